// A TypeScript or JavaScript MCP server that accepts the tokens of "pasteport server".
//
//   npm install @modelcontextprotocol/sdk@1.32.2 zod
//   SECRET=… node server.mjs
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js';
import { InvalidTokenError } from '@modelcontextprotocol/sdk/server/auth/errors.js';
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import * as z from 'zod';

const { ISSUER: issuer = 'http://127.0.0.1:8080', SECRET: secret = '', PORT: port = 3000 } = process.env;
const { RESOURCE: resource = `http://127.0.0.1:${port}/mcp` } = process.env; // the URL that clients connect to
const metadataPath = '/.well-known/oauth-protected-resource/mcp';
const credentials = btoa(`${encodeURIComponent(resource)}:${secret}`);

async function verifyAccessToken(token) {
  const answer = await fetch(`${issuer}/oauth/introspect`, {
    method: 'POST',
    headers: { Authorization: `Basic ${credentials}` },
    body: new URLSearchParams({ token }),
    signal: AbortSignal.timeout(10_000),
  });
  if (!answer.ok) throw new Error(`the introspection endpoint answered ${answer.status}: ${await answer.text()}`);
  const claims = await answer.json();
  if (!claims.active) throw new InvalidTokenError('The access token is invalid or has expired');
  return {
    token,
    clientId: claims.client_id,
    scopes: claims.scope.split(' '),
    expiresAt: claims.exp,
    extra: { subject: claims.sub, account: claims.username ?? claims.sub, roles: claims.roles },
  };
}

// needs lets a request pass whose token has the scope.
const needs = (scope) => requireBearerAuth({
  verifier: { verifyAccessToken },
  requiredScopes: [scope],
  resourceMetadataUrl: new URL(metadataPath, resource).href,
});
const read = needs('notes:read'), write = needs('notes:write');
const writes = (message) => message?.method === 'tools/call' && message.params?.name === 'add_note';

const notes = ['welcome'];

function newServer() {
  const server = new McpServer({ name: 'notes', version: '1.0.0' });
  server.registerTool('list_notes', { description: 'List the notes' },
    () => ({ content: [{ type: 'text', text: notes.join('\n') }] }));
  server.registerTool('add_note', { description: 'Add a note', inputSchema: { text: z.string() } },
    ({ text }, { authInfo }) => {
      if (!authInfo.scopes.includes('notes:write')) throw new Error('the app may not write notes');
      notes.push(`${authInfo.extra.account}: ${text}`);
      return { content: [{ type: 'text', text: 'added' }] };
    });
  return server;
}

const app = createMcpExpressApp({ host: '127.0.0.1' });
app.use((request, response, next) => { // lets web pages of any site call the server with a token
  response.set({
    'Access-Control-Allow-Origin': '*',
    'Access-Control-Allow-Methods': 'GET, POST, DELETE',
    'Access-Control-Allow-Headers':
      'Authorization, Content-Type, Accept, Last-Event-ID, MCP-Protocol-Version, MCP-Session-Id, Mcp-Method, Mcp-Name',
    'Access-Control-Expose-Headers': 'WWW-Authenticate, MCP-Session-Id',
  });
  return request.method === 'OPTIONS' ? response.sendStatus(204) : next();
});
app.get(metadataPath, (_, response) => response.json({
  resource,
  authorization_servers: [issuer],
  scopes_supported: ['notes:read'],
  bearer_methods_supported: ['header'],
}));
app.all('/mcp', (request, response, next) =>
  ([request.body].flat().some(writes) ? write : read)(request, response, next));
app.post('/mcp', async (request, response) => {
  const server = newServer(), transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on('close', () => server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
});
app.all('/mcp', (_, response) => response.sendStatus(405)); // there are no sessions
app.listen(port, '127.0.0.1', () => console.log(`serving ${resource}`));
