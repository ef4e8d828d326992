// Runs third-party clients that call a tool with another scope: the person approves again, and the client continues in its
// session. The gateway protects the server; the fixtures are a site that uses the library.
//
//   npm ci --ignore-scripts --prefix features/interop
//   go build -o dist/ ./bootstrap/cmd/pasteport ./features/interop/goclient ./features/interop/fixtures
//   features/interop/node_modules/.bin/node features/interop/step_up.js dist/pasteport dist
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { openClientSite } from './client_site.js';
import { goCallers } from './clients/go_caller.js';
import { callers } from './clients/typescript_caller.js';
import { freePort } from './free_port.js';
import { startFixtures, startServer, startTrusting } from './pasteport.js';
import { openBalancer } from './proxy.js';
import { report } from './report.js';
import { sdkVersion } from './servers.js';
import { tryOut } from './try_out.js';

const steps = ['connect', 'call', 'step up', 'go on'];
const key = 'a-key-of-the-server';
const scopes = ['--scopes', 'mcp = Use the tools', '--scopes', 'danger mcp = Delete things', '--tool-scopes', 'wipe_* = danger'];

async function openGateway({ binary, site, dir }) {
  const script = join(import.meta.dirname, 'servers', 'deleting.js');
  const server = await startServer(process.execPath, [script, await freePort()], { ...process.env, KEY: key });
  const gateway = await startTrusting(binary, site.authority, dir, `${server.issuer}/mcp`, ...scopes);
  return { ...gateway, token: key, stop: () => gateway.stop().finally(server.stop) };
}

// openReplicas forwards each request to the next of three gateways, which share a folder.
async function openReplicas({ binary, site, dir }) {
  const script = join(import.meta.dirname, 'servers', 'deleting.js');
  const server = await startServer(process.execPath, [script, await freePort()], { ...process.env, KEY: key });
  const addresses = await Promise.all([1, 2, 3].map(freePort));
  const balancer = await openBalancer(addresses.map((port) => `http://127.0.0.1:${port}`));
  const replicas = [];
  for (const port of addresses) {
    const own = ['--addr', `127.0.0.1:${port}`, '--issuer', balancer.url];
    replicas.push(await startTrusting(binary, site.authority, dir, `${server.issuer}/mcp`, ...own, ...scopes));
  }
  const stop = async () => {
    balancer.close();
    await Promise.all([...replicas, server].map((one) => one.stop()));
  };
  return { ...replicas[0], token: key, stop, log: () => replicas.map((one) => one.log()).join('') };
}

const openLibrary = ({ folder, site, dir }) => startFixtures(join(folder, 'fixtures'), site.authority, dir);

async function use(caller, revision, step) {
  try {
    await step('connect', async () => assert.equal(await caller.connect(), revision));
    await step('call', async () => { await caller.call({ name: 'test_simple_text', arguments: {} }, () => {}); });
    const before = await caller.session();
    await step('step up', () => caller.stepUp({ name: 'wipe_all', arguments: {} }));
    await step('go on', async () => {
      await caller.call({ name: 'wipe_all', arguments: {} }, () => {});
      assert(before, 'there is no session');
      assert.equal(await caller.session(), before, 'the session changed');
      return 'in the same session';
    });
  } finally {
    await caller.close();
  }
}

async function main(binary, folder) {
  const clients = [...goCallers(join(folder, 'goclient'), sdkVersion()), ...callers];
  const outcomes = [];
  let log = '';
  for (const [name, open] of [['gateway', openGateway], ['3 gateways', openReplicas], ['library', openLibrary]]) {
    const dir = await mkdtemp(join(tmpdir(), 'pasteport-step-up-'));
    const site = await openClientSite(dir);
    const world = await open({ binary, folder, site, dir });
    try {
      for (const client of clients) {
        for (const revision of ['2025-06-18', '2025-11-25']) { // those with sessions
          const who = { server: name, client: `${client.name} ${client.version}`, revision };
          outcomes.push(await tryOut(who, (step) => use(client.caller({ ...world, clientID: site.id }, 'streamable', revision), revision, step)));
        }
      }
    } finally {
      await world.stop();
      log += world.log();
      site.close();
      await rm(dir, { recursive: true });
    }
  }
  return report(outcomes, steps, log);
}

process.exit(await main(resolve(process.argv[2] ?? 'dist/pasteport'), resolve(process.argv[3] ?? 'dist')) ? 0 : 1);
