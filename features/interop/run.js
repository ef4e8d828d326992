// Lets clients that other people wrote connect, list, call, refresh and revoke against a built pasteport binary, unmodified.
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

const clientLimit = 20_000; // ms for each client
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
        outcomes.push(await tryOut(client, world));
      }
    } finally {
      await server.stop();
    }
    return report(outcomes, server.log());
  } finally {
    site.close();
    await rm(dir, { recursive: true });
  }
}

// tryOut goes through the steps until one fails.
async function tryOut(client, world) {
  const outcome = { client: client.name, version: versionOf(client.name), transport: client.transport, done: {} };
  const step = async (name, act) => { outcome.done[name] = { note: await act() }; };
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${clientLimit} ms`)), clientLimit);
  });
  try {
    await Promise.race([client.run(world, step), limit]);
  } catch (error) {
    outcome.error = error;
  }
  clearTimeout(timer);
  return outcome;
}

process.exit(await main(process.argv[2] ?? 'dist/pasteport') ? 0 : 1);
