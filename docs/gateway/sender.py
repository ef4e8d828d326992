"""The caller of a request that came through a Pasteport gateway with credential "static"."""
import base64
import hashlib
import hmac
import re
import time
from urllib.parse import unquote

SIGNED = ("@method", "content-digest", "x-pasteport-subject", "x-pasteport-roles", "x-pasteport-client", "x-pasteport-grant", "x-pasteport-resource")
INPUT = re.compile(r'pasteport=(\("%s"\);created=([0-9]+);keyid="pasteport";alg="hmac-sha256")' % '" "'.join(SIGNED))


def sender_of(method, headers, body, secret, now=None):
    """Return the caller, or raise ValueError if the gateway has not signed exactly this request. The names of headers are in lower case, and body and secret are bytes."""
    found = INPUT.fullmatch(headers.get("signature-input", ""))
    if not found:
        raise ValueError("not signed by the gateway")
    lines = ['"%s": %s' % (name, method if name == "@method" else headers.get(name, "")) for name in SIGNED]
    base = "\n".join([*lines, '"@signature-params": ' + found[1]])
    signature = "pasteport=:%s:" % base64.b64encode(hmac.digest(secret, base.encode(), "sha256")).decode()
    if not hmac.compare_digest(headers.get("signature", "").encode(), signature.encode()):
        raise ValueError("not signed by the gateway")
    digest = "sha-256=:%s:" % base64.b64encode(hashlib.sha256(body).digest()).decode()
    now = time.time() if now is None else now
    if headers.get("content-digest") != digest or abs(now - int(found[2])) > 60:
        raise ValueError("signed for another body or another time")
    said = {name: headers.get("x-pasteport-" + name, "") for name in ("subject", "roles", "client", "grant", "resource")}
    return {name: unquote(value) for name, value in said.items()} | {"roles": [unquote(role) for role in said["roles"].split(",") if role]}
