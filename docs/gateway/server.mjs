// An ordinary MCP server that takes API keys. It has no code for OAuth or for the gateway in front of it.
//
//   npm install @modelcontextprotocol/sdk@1.32.2 zod
//   echo my-first-key >keys.txt
//   node server.mjs
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import * as z from 'zod';

const port = Number(process.env.PORT ?? 9000), host = process.env.HOST ?? '127.0.0.1'; // only the gateway may reach it
const sessions = new Map(); // by id: the key that opened the session, and its transport

// keyOf returns the API key of a request if it is in keys.txt, which has one key on each line and may change at any time.
async function keyOf(request) {
  const key = (request.headers.authorization ?? '').replace(/^Bearer /, '');
  const keys = (await readFile('keys.txt', 'utf8')).split('\n').filter(Boolean);
  return keys.includes(key) ? key : undefined;
}

function newServer() {
  const server = new McpServer({ name: 'notes', version: '1.0.0' });
  server.registerTool('add', { description: 'Add two numbers', inputSchema: { a: z.number(), b: z.number() } },
    ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }] }));
  server.registerTool('count', { description: 'Count to five, and report the progress' }, async (extra) => {
    const progressToken = extra._meta?.progressToken;
    for (let progress = 1; progress <= 5; progress++) {
      await pause(200, undefined, { signal: extra.signal });
      if (progressToken !== undefined) {
        await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total: 5 } });
      }
    }
    return { content: [{ type: 'text', text: 'five' }] };
  });
  return server;
}

// openSession returns the transport of a new session; only an initialize request gets one.
async function openSession(key) {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => { sessions.set(id, { key, transport }); },
    onsessionclosed: (id) => { sessions.delete(id); },
  });
  await newServer().connect(transport);
  return transport;
}

const app = createMcpExpressApp({ host });
app.all('/mcp', async (request, response) => {
  const key = await keyOf(request);
  if (!key) {
    response.status(401).set('WWW-Authenticate', 'Bearer').send('Unknown API key');
    return;
  }
  const id = request.headers['mcp-session-id'], session = sessions.get(id);
  if (id && session?.key !== key) {
    response.status(404).json({ jsonrpc: '2.0', id: null, error: { code: -32001, message: 'Session not found' } });
    return;
  }
  const transport = session?.transport ?? await openSession(key);
  await transport.handleRequest(request, response, request.body);
});
app.listen(port, host, () => console.log(`serving http://${host}:${port}/mcp`));
