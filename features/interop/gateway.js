// Runs unmodified third-party clients against unmodified third-party servers through the gateway of a built pasteport
// binary: they connect with OAuth, list the tools, call one that reports progress, and cancel a call.
//
//   npm ci --ignore-scripts --prefix features/interop
//   sdk=github.com/modelcontextprotocol/go-sdk
//   go build -o dist/ ./bootstrap/cmd/pasteport ./features/interop/goclient
//   go build -o dist/ $sdk/conformance/everything-server $sdk/examples/server/everything
//   features/interop/node_modules/.bin/node features/interop/gateway.js dist/pasteport dist
//
// A tap in front of each server records the requests that reach it.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { openClientSite } from './client_site.js';
import { askDirectly } from './clients/directly.js';
import { goCallers } from './clients/go_caller.js';
import { callers } from './clients/typescript_caller.js';
import { startGateway } from './pasteport.js';
import { report } from './report.js';
import { sdkVersion, serversOf } from './servers.js';
import { openTap } from './tap.js';
import { tryOut } from './try_out.js';

const steps = ['connect', 'list', 'stream', 'cancel', 'secrecy'];
const attempts = 3; // to cancel a call before it ends

async function main(binary, folder) {
  const clients = [...goCallers(join(folder, 'goclient'), sdkVersion()), ...callers];
  const dir = await mkdtemp(join(tmpdir(), 'pasteport-gateway-'));
  const site = await openClientSite(dir);
  const outcomes = [], silent = [];
  let log = '';
  try {
    for (const server of serversOf(folder)) {
      const home = await mkdtemp(join(dir, 'server-'));
      log += await behind(server, home, { binary, site, clients, outcomes, silent });
    }
  } finally {
    site.close();
    await rm(dir, { recursive: true });
  }
  const passed = report(outcomes, steps, log);
  console.log(['', ...silent].join('\n'));
  return passed;
}

// behind starts the gateway in front of one server, runs every client, and returns the gateway's log.
async function behind(server, dir, { binary, site, clients, outcomes, silent }) {
  const upstream = await server.start();
  const tap = await openTap(upstream.issuer);
  try {
    const gateway = await startGateway(binary, site.authority, dir, tap.url + server.path);
    const world = { ...gateway, clientID: site.id, server, tap };
    try {
      for (const revision of server.asked) {
        const direct = await askDirectly(upstream.issuer + server.path, server.transport, revision);
        outcomes.push(...await through({ ...world, direct }, revision, clients, silent));
      }
    } finally {
      await gateway.stop();
    }
    return gateway.log();
  } finally {
    tap.close();
    await upstream.stop();
  }
}

// through runs every client that supports the revision, if the server supports it too.
async function through(world, revision, clients, silent) {
  const { server, direct } = world, outcomes = [];
  assert.equal(!direct.refusal, server.speaks.includes(revision), `${server.name} and ${revision}: ${direct.refusal ?? 'supported'}`);
  if (direct.refusal) {
    silent.push(`not supported by the server: ${server.name}, ${revision} (${direct.refusal})`);
    return [];
  }
  for (const client of clients) {
    if (!client.speaks(revision)) {
      silent.push(`not supported by the client: ${client.name} ${client.version}, ${revision}, with ${server.name}`);
      continue;
    }
    const who = { server: server.name, transport: server.transport, revision, client: `${client.name} ${client.version}` };
    outcomes.push(await tryOut(who, (step) => use(client.caller(world, server.transport, revision), world, revision, step)));
  }
  return outcomes;
}

async function use(caller, { server: { tool }, tap, direct, token }, revision, step) {
  tap.forget();
  try {
    await step('connect', async () => assert.equal(await caller.connect(), revision));
    await step('list', () => list(caller, direct));
    if (tool) {
      await step('stream', () => (tool.logs === 1 ? log : stream)(caller, tool));
    } else {
      step.without('stream', 'no tool reports progress');
    }
    if (tool && tool.logs !== 1) {
      await step('cancel', () => cancel(caller, tool, tap, revision));
    } else {
      step.without('cancel', 'no long-running tool');
    }
    await step('secrecy', () => tap.secrecy(token));
  } finally {
    await caller.close();
  }
}

// list checks for every tool that the server lists without the gateway; it may list more to a client with more capabilities. Bound
// tools are without unusual names.
async function list(caller, direct) {
  const names = await caller.list();
  const expected = direct.names.filter((name) => !process.env.PASTEPORT_BIND_TOOLS || /^[\w./-]+$/.test(name));
  assert(expected.every((name) => names.includes(name)), `got the tools ${names}, without the gateway ${direct.names}`);
  return `${names.length} tools`;
}

// stream checks that messages of a running tool arrive immediately, not with the result.
async function stream(caller, tool) {
  const heard = [], all = Promise.withResolvers();
  const hear = () => {
    if (heard.push(performance.now()) === (tool.logs ?? 1)) {
      all.resolve();
    }
  };
  await caller.call(tool, hear);
  const before = heard.length, spread = performance.now() - heard[0];
  await all.promise;
  assert(before > 1, `heard ${before} before the result`);
  assert(spread >= tool.spread, `the first of ${before} came ${spread} ms before the result`);
  return `${before} before the result`;
}

// log checks that messages of a short call arrive.
async function log(caller, tool) {
  const heard = Promise.withResolvers();
  await caller.log();
  await caller.call(tool, heard.resolve);
  await heard.promise;
  return 'one, with the result';
}

// cancel cancels a call at its first message, and checks that the server gets the cancellation and that the session continues.
async function cancel(caller, tool, tap, revision) {
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const stop = new AbortController();
    try {
      await caller.call(tool, () => stop.abort(), stop.signal);
    } catch (error) {
      assert(stop.signal.aborted, error);
      const how = await tap.cancelled(revision);
      await caller.list();
      return how;
    }
  }
  throw new Error(`the call ended before its cancellation, ${attempts} times`);
}

process.exit(await main(resolve(process.argv[2] ?? 'dist/pasteport'), resolve(process.argv[3] ?? 'dist')) ? 0 : 1);
