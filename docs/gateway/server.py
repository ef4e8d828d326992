# An ordinary MCP server that takes API keys. It has no code for OAuth or for the gateway in front of it.
#
#   pip install 'mcp>=1.9,<2'
#   echo my-first-key >keys.txt
#   python3 server.py
import asyncio
from pathlib import Path

import uvicorn
from mcp.server.fastmcp import Context, FastMCP
from starlette.responses import PlainTextResponse

mcp = FastMCP("notes")


@mcp.tool()
def add(a: float, b: float) -> str:
    """Add two numbers"""
    return str(a + b)


@mcp.tool()
async def count(ctx: Context) -> str:
    """Count to five, and report the progress"""
    for number in range(1, 6):
        await asyncio.sleep(0.2)
        await ctx.report_progress(number, 5)
    return "five"


class KeysOnly:
    """Accepts the keys in keys.txt, which has one key on each line and may change at any time."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and not self.knows(dict(scope["headers"]).get(b"authorization", b"")):
            refusal = PlainTextResponse("Unknown API key", status_code=401, headers={"WWW-Authenticate": "Bearer"})
            await refusal(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def knows(self, authorization):
        scheme, _, key = authorization.decode("latin-1").partition(" ")
        return scheme == "Bearer" and key in Path("keys.txt").read_text().split()


uvicorn.run(KeysOnly(mcp.streamable_http_app()), host="127.0.0.1", port=9000)
