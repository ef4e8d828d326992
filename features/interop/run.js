// Runs unmodified third-party clients against a built pasteport binary: they connect, list, call, refresh under a new server secret, and revoke.
// Clients with a metadata document do so with and without self-registration, and those without one register themselves.
//
//   npm ci --ignore-scripts --prefix features/interop
//   go build -o dist/pasteport ./bootstrap/cmd/pasteport
//   features/interop/node_modules/.bin/node features/interop/run.js dist/pasteport
//
// Everything runs on loopback: the binary, the site that serves the clients' metadata document over TLS, and the browser.
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
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
const withDocument = [...typescript, ...oauth4webapi, ...openidClient, ...mcpRemote].map((client) => ({ ...client, identity: 'document' }));
const registering = [...typescript, ...mcpRemote].map((client) => ({ ...client, identity: 'registration' }));
const rounds = [
  { name: 'off', settings: [], clients: withDocument },
  { name: 'on', settings: ['--self-registration'], clients: [...withDocument, ...registering] },
];

// runRound runs the clients of a round against one server, and returns the server's log.
async function runRound({ name, settings, clients }, { binary, site, dir }, outcomes) {
  await mkdir(dir);
  const server = await startPasteport(binary, site.authority, dir, ...settings);
  try {
    for (const client of clients) {
      const world = { ...server, clientID: client.identity === 'document' ? site.id : undefined, dir };
      const who = { client: client.name, version: versionOf(client.name), transport: client.transport, identity: client.identity, 'self-registration': name };
      outcomes.push(await tryOut(who, (step) => client.run(world, rotatingKeys(server, step))));
    }
  } finally {
    await server.stop();
  }
  return server.log();
}

// rotatingKeys replaces the server secret before the refresh of each client.
function rotatingKeys(server, step) {
  const rotating = (name, act) => step(name, async () => {
    if (name === 'refresh') {
      server.rotateKeys();
    }
    return act();
  });
  return Object.assign(rotating, { without: step.without });
}

async function main(binary) {
  const dir = await mkdtemp(join(tmpdir(), 'pasteport-interop-'));
  const site = await openClientSite(dir);
  try {
    const outcomes = [];
    let log = '';
    for (const round of rounds) {
      log += await runRound(round, { binary: resolve(binary), site, dir: join(dir, round.name) }, outcomes);
    }
    return report(outcomes, steps, log);
  } finally {
    site.close();
    await rm(dir, { recursive: true });
  }
}

process.exit(await main(process.argv[2] ?? 'dist/pasteport') ? 0 : 1);
