"""An MCP server over stdio, with only the standard library. Its only tool returns the last characters of the key that the server was given."""
import json
import os
import sys

TOOL = {"name": "key", "description": "Returns the last characters of the key", "inputSchema": {"type": "object"}}


def answer(method, params):
    if method == "initialize":
        about = {"name": "my-server", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "The key ends with " + os.environ["API_KEY"][-3:]}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:  # a notification has no answer
        result = answer(message["method"], message.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
