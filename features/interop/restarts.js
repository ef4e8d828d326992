// Keeps third-party clients connected while the server behind the gateway restarts five times and loses its sessions
// each time. Unmodified FastMCP and mcp-proxy respond with 401 to an unknown session.
//
//   npm ci --ignore-scripts --prefix features/interop
//   go build -o dist/ ./bootstrap/cmd/pasteport ./features/interop/goclient
//   features/interop/node_modules/.bin/node features/interop/restarts.js dist/pasteport dist
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { openClientSite } from './client_site.js';
import { goCallers } from './clients/go_caller.js';
import { callers } from './clients/typescript_caller.js';
import { freePort } from './free_port.js';
import { startServer, startTrusting } from './pasteport.js';
import { table, versionOf } from './report.js';
import { sdkVersion } from './servers.js';

const restarts = 5, revision = '2025-11-25', key = 'a-key-of-the-server';
const servers = [['fastmcp', 'fastmcp.js'], ['mcp-proxy', 'mcp_proxy.js']];

const serve = (script, port) => startServer(process.execPath, [join(import.meta.dirname, 'servers', script), port], { ...process.env, KEY: key });

// reconnect retries while the gateway pauses requests to the restarted server (U10).
async function reconnect(client, limit) {
  for (;;) {
    try {
      return await client.reconnect();
    } catch (error) {
      assert.match(String(error), /Bad Gateway|Service Unavailable|50[23]/);
      await pause(500, undefined, { signal: limit });
    }
  }
}

// useAgain lists the tools, in a new session if the old one is lost, and returns whether it was.
async function useAgain(client) {
  try {
    await client.list();
    return false;
  } catch (error) {
    assert.doesNotMatch(String(error), /unauthorized|401/i);
  }
  await reconnect(client, AbortSignal.timeout(15_000));
  assert.deepEqual(await client.list(), ['hello']);
  return true;
}

async function surviveRestarts(script, clients, world) {
  const port = await freePort();
  let server = await serve(script, port);
  const gateway = await startTrusting(world.binary, world.site.authority, world.dir, `${server.issuer}/mcp`);
  const open = clients.map((client) => client.caller({ ...gateway, token: key, clientID: world.site.id }, 'streamable', revision));
  const renewed = open.map(() => 0);
  try {
    for (const client of open) {
      await client.connect();
      assert.deepEqual(await client.list(), ['hello']);
    }
    for (let restart = 1; restart <= restarts; restart++) {
      await server.stop();
      server = await serve(script, port);
      for (const [i, client] of open.entries()) {
        renewed[i] += await useAgain(client);
      }
    }
  } finally {
    await Promise.all(open.map((client) => client.close().catch(() => {})));
    await server.stop();
    await gateway.stop();
  }
  const events = (name) => gateway.log().split(name).length - 1;
  assert.equal(events('grant_created'), open.length, 'each person pasted the key once');
  assert.equal(events('grant_ended'), 0, gateway.log());
  assert(renewed.every((times) => times === restarts), `sessions renewed: ${renewed}`);
  const trace = execFileSync(world.binary, ['connections', '--data', join(world.dir, 'data'), '--json'], { encoding: 'utf8' });
  assert.match(trace, /does not know the session any more/);
  return renewed;
}

async function main(binary, folder) {
  const clients = [...goCallers(join(folder, 'goclient'), sdkVersion()), ...callers];
  const rows = [];
  for (const [name, script] of servers) {
    const dir = await mkdtemp(join(tmpdir(), 'pasteport-restarts-'));
    const site = await openClientSite(dir);
    try {
      const renewed = await surviveRestarts(script, clients, { binary, site, dir });
      clients.forEach((client, i) => rows.push([name, versionOf(name), `${client.name} ${client.version}`, String(restarts), String(renewed[i])]));
    } finally {
      site.close();
      await rm(dir, { recursive: true });
    }
  }
  table(['SERVER', 'VERSION', 'CLIENT', 'RESTARTS', 'NEW SESSIONS'], rows);
}

await main(resolve(process.argv[2] ?? 'dist/pasteport'), resolve(process.argv[3] ?? 'dist'));
process.exit(0);
