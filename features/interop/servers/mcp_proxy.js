// mcp-proxy in front of a stdio server, with one shared key: node mcp_proxy.js PORT, KEY in the environment.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { startHTTPServer } from 'mcp-proxy';

const port = Number(process.argv[2]);
process.on('SIGTERM', () => process.exit(0));
await startHTTPServer({
  host: '127.0.0.1', port,
  authenticate: async ({ headers }) => headers.authorization === `Bearer ${process.env.KEY}` && { authenticated: true },
  createServer: async () => {
    const server = new McpServer({ name: 'mcp-proxy', version: '1.0.0' });
    server.registerTool('hello', { description: 'Says hello' }, async () => ({ content: [{ type: 'text', text: 'hello' }] }));
    return server;
  },
});
console.log(`serving http://127.0.0.1:${port}`);
