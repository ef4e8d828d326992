// A server on version 2 of the official TypeScript SDK, which has no published example server. The SDK is unmodified.
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';

const steps = 10;

function newServer() {
  const server = new McpServer({ name: 'typescript-2', version: '1.0.0' });
  server.registerTool('count', { description: 'Counts, and says how far it is' }, async ({ mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (let progress = 1; progress <= steps; progress++) {
      await pause(100, undefined, { signal: mcpReq.signal });
      if (progressToken !== undefined) {
        await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: steps } });
      }
    }
    return { content: [{ type: 'text', text: `Counted to ${steps}` }] };
  });
  return server;
}

// As the SDK's documentation requires for a server on node:http.
const named = localhostHostValidation(), called = localhostOriginValidation(), handle = toNodeHandler(createMcpHandler(newServer));

createServer((request, response) => {
  if (named(request, response) && called(request, response)) {
    handle(request, response);
  }
}).listen(3000);
