// An MCP server behind a gateway with credential "static": it knows no user's key, and trusts what the gateway has signed.
//
//   npm install @modelcontextprotocol/sdk@1.32.2 zod
//   SIGNING_SECRET=… node whoami.mjs
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { senderOf } from './sender.mjs';

const port = Number(process.env.PORT ?? 9000), secret = process.env.SIGNING_SECRET;

function newServer() {
  const server = new McpServer({ name: 'whoami', version: '1.0.0' });
  server.registerTool('whoami', { description: 'Say who is calling' }, (extra) => {
    const { subject, roles } = extra.authInfo.extra;
    return { content: [{ type: 'text', text: `${subject}: ${roles.join(' and ')}` }] };
  });
  return server;
}

async function answer(request, response) {
  const body = await buffer(request);
  let sender;
  try {
    sender = senderOf(request.method, request.headers, body, secret);
  } catch (error) {
    response.writeHead(401).end(error.message);
    return;
  }
  request.auth = { token: '', clientId: sender.client, scopes: [], extra: sender }; // tools find it in extra.authInfo
  const transport = new StreamableHTTPServerTransport(); // without sessions
  await newServer().connect(transport);
  await transport.handleRequest(request, response, body.length ? JSON.parse(body) : undefined);
}

createServer(answer).listen(port, '127.0.0.1', () => console.log(`serving http://127.0.0.1:${port}/mcp`));
