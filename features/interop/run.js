// Runs unmodified third-party clients against a built pasteport binary: they connect, list, call, refresh, connect again after the server secret was
// replaced, and revoke. A first server accepts only clients that publish a metadata document, and a second one also those that register themselves.
//
//   npm ci --ignore-scripts --prefix features/interop
//   go build -o dist/ ./bootstrap/cmd/pasteport ./features/interop/goclient
//   features/interop/node_modules/.bin/node features/interop/run.js dist/pasteport dist/goclient
//
// Everything runs on loopback: the binary, the site that serves the clients' metadata document over TLS, and the browser. MCP Inspector needs a chromium
// on the PATH.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { openClientSite } from './client_site.js';
import { registering as goSDK } from './clients/go_sdk.js';
import { registering as inspector } from './clients/inspector.js';
import { clients as mcpRemote, registering as mcpRemoteByDefault } from './clients/mcp_remote.js';
import { clients as oauth4webapi } from './clients/oauth4webapi.js';
import { clients as openidClient, registering as openidClientWithSecret } from './clients/openid_client.js';
import { clients as typescript, registering as typescriptRegistering } from './clients/typescript_sdk.js';
import { startPasteport } from './pasteport.js';
import { report } from './report.js';
import { tryOut } from './try_out.js';

const steps = ['connect', 'list', 'call', 'refresh', 'reconnect', 'revoke'];
const publishing = [...typescript, ...oauth4webapi, ...openidClient, ...mcpRemote];

async function main(binary, goclient) {
  const registering = [...typescriptRegistering, ...mcpRemoteByDefault, ...openidClientWithSecret, ...goSDK(resolve(goclient)), ...inspector];
  const dir = await mkdtemp(join(tmpdir(), 'pasteport-interop-'));
  const site = await openClientSite(dir);
  try {
    const off = await connectAll(binary, site, dir, publishing, '--self-registration=off');
    const on = await connectAll(binary, site, dir, [...publishing, ...registering], '--self-registration');
    return off && on;
  } finally {
    site.close();
    await rm(dir, { recursive: true });
  }
}

// connectAll runs the clients against a server with these settings, and returns whether all passed.
async function connectAll(binary, site, parent, clients, ...settings) {
  const dir = await mkdtemp(join(parent, 'server-'));
  const server = await startPasteport(resolve(binary), site.authority, dir, ...settings);
  const world = { ...server, clientID: site.id, dir };
  const outcomes = [];
  try {
    for (const client of clients) {
      const who = { client: client.name, version: client.version, transport: client.transport, client_id: client.registers ? 'registered' : 'document' };
      outcomes.push(await tryOut(who, (step) => client.run(world, step), client.limit));
    }
  } finally {
    await server.stop();
  }
  console.log(`\npasteport serve ${settings.join(' ')}`);
  return report(outcomes, steps, server.log());
}

process.exit(await main(process.argv[2] ?? 'dist/pasteport', process.argv[3] ?? 'dist/goclient') ? 0 : 1);
