// A minimal client of MCP 2026-07-28, for OAuth clients without MCP support.
import assert from 'node:assert/strict';

const revision = '2026-07-28';

// speech calls a method through send(headers, body), which adds the token.
export function speech(send) {
  return async (method, params = {}) => {
    const headers = {
      'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': revision, 'Mcp-Method': method, ...(params.name && { 'Mcp-Name': params.name }),
    };
    const answer = await send(new Headers(headers), JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }));
    assert.equal(answer.status, 200, `${method}: ${answer.status}`);
    return resultOf(await answer.text());
  };
}

const meta = {
  'io.modelcontextprotocol/protocolVersion': revision,
  'io.modelcontextprotocol/clientInfo': { name: 'interop', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

// resultOf reads the only event of a response.
function resultOf(text) {
  const message = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text);
  assert(message.result, text);
  return message.result;
}
