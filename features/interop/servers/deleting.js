// A server with sessions on the official TypeScript SDK, with one key and a tool that deletes: node deleting.js PORT, KEY in
// the environment.
import { randomUUID } from 'node:crypto';
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

const port = Number(process.argv[2]), open = new Map(), app = createMcpExpressApp();

function newServer() {
  const server = new McpServer({ name: 'deleting', version: '1.0.0' });
  for (const name of ['test_simple_text', 'wipe_all']) {
    server.registerTool(name, { description: name }, async () => ({ content: [{ type: 'text', text: name }] }));
  }
  return server;
}

async function openSession() {
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: (id) => { open.set(id, transport); } });
  await newServer().connect(transport);
  return transport;
}

app.all('/mcp', async (request, response) => {
  if (request.headers.authorization !== `Bearer ${process.env.KEY}`) {
    return response.status(401).end();
  }
  const session = request.headers['mcp-session-id'];
  const transport = session ? open.get(session) : await openSession();
  return transport ? transport.handleRequest(request, response, request.body) : response.status(404).end();
});
process.on('SIGTERM', () => process.exit(0));
app.listen(port, '127.0.0.1', () => console.log(`serving http://127.0.0.1:${port}`));
