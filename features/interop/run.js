// Runs unmodified third-party clients against a built pasteport binary: they connect, list, call, refresh and revoke.
//
//   npm ci --ignore-scripts --prefix features/interop
//   go build -o dist/pasteport ./bootstrap/cmd/pasteport
//   features/interop/node_modules/.bin/node features/interop/run.js dist/pasteport
//
// Everything runs on loopback: the binary, the site that serves the clients' metadata document over TLS, and the browser.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { openClientSite } from './client_site.js';
import { clients as mcpRemote } from './clients/mcp_remote.js';
import { clients as oauth4webapi } from './clients/oauth4webapi.js';
import { clients as openidClient } from './clients/openid_client.js';
import { clients as typescript } from './clients/typescript_sdk.js';
import { startPasteport } from './pasteport.js';
import { report, versionOf } from './report.js';
import { tryOut } from './try_out.js';

const steps = ['connect', 'list', 'call', 'refresh', 'revoke'];
const clients = [...typescript, ...oauth4webapi, ...openidClient, ...mcpRemote];

async function main(binary) {
  const dir = await mkdtemp(join(tmpdir(), 'pasteport-interop-'));
  const site = await openClientSite(dir);
  try {
    const server = await startPasteport(resolve(binary), site.authority, dir);
    const world = { ...server, clientID: site.id, dir };
    const outcomes = [];
    try {
      for (const client of clients) {
        const who = { client: client.name, version: versionOf(client.name), transport: client.transport };
        outcomes.push(await tryOut(who, (step) => client.run(world, step)));
      }
    } finally {
      await server.stop();
    }
    return report(outcomes, steps, server.log());
  } finally {
    site.close();
    await rm(dir, { recursive: true });
  }
}

process.exit(await main(process.argv[2] ?? 'dist/pasteport') ? 0 : 1);
