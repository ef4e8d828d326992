# A Python MCP server that accepts the tokens of "pasteport server".
#
#   pip install 'mcp>=1.20,<2'
#   SECRET=… python server.py
import asyncio
import base64
import json
import os
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request, urlopen

ISSUER = os.environ.get("ISSUER", "http://127.0.0.1:8080")
SECRET = os.environ.get("SECRET", "")
PORT = int(os.environ.get("PORT", "3000"))
RESOURCE = os.environ.get("RESOURCE", f"http://127.0.0.1:{PORT}/mcp")  # the URL that clients connect to


def introspect(token):
    """Ask the authorization server about an access token (RFC 7662)."""
    credentials = base64.b64encode(f"{quote(RESOURCE, safe='')}:{SECRET}".encode()).decode()
    request = Request(f"{ISSUER}/oauth/introspect", urlencode({"token": token}).encode(),
                      {"Authorization": f"Basic {credentials}"})
    with urlopen(request, timeout=10) as answer:  # raises HTTPError for another status than 200
        return json.load(answer)


def main():
    from mcp.server.auth.middleware.auth_context import get_access_token
    from mcp.server.auth.provider import AccessToken, TokenVerifier
    from mcp.server.auth.settings import AuthSettings
    from mcp.server.fastmcp import FastMCP

    class Introspection(TokenVerifier):
        async def verify_token(self, token):
            claims = await asyncio.to_thread(introspect, token)
            if not claims["active"]:
                return None
            return AccessToken(token=token, client_id=claims["client_id"], scopes=claims["scope"].split(),
                               expires_at=claims["exp"], resource=claims["aud"])

    server = FastMCP(
        "notes", host="127.0.0.1", port=PORT, streamable_http_path=urlsplit(RESOURCE).path,
        token_verifier=Introspection(),
        auth=AuthSettings(issuer_url=ISSUER, resource_server_url=RESOURCE, required_scopes=["notes:read"]),
    )
    notes = ["welcome"]

    @server.tool()
    def list_notes() -> str:
        """List the notes."""
        return "\n".join(notes)

    @server.tool()
    def add_note(text: str) -> str:
        """Add a note."""
        if "notes:write" not in get_access_token().scopes:
            raise ValueError("the app may not write notes: connect it again and allow it")
        notes.append(text)
        return "added"

    server.run(transport="streamable-http")


if __name__ == "__main__":
    main()
