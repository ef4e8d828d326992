// FastMCP as in its documentation, with one shared key: node fastmcp.js PORT, KEY in the environment.
import { FastMCP } from 'fastmcp';

const port = Number(process.argv[2]);
const server = new FastMCP({
  name: 'fastmcp', version: '1.0.0',
  authenticate: async ({ headers }) => {
    if (headers.authorization !== `Bearer ${process.env.KEY}`) {
      throw new Response('no such key', { status: 401 });
    }
    return {};
  },
});
server.addTool({ name: 'hello', description: 'Says hello', execute: async () => 'hello' });
process.on('SIGTERM', () => process.exit(0));
await server.start({ transportType: 'httpStream', httpStream: { host: '127.0.0.1', port } });
console.log(`serving http://127.0.0.1:${port}`);
