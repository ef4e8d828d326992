// Runs unmodified public servers behind the gateway of a built pasteport binary, with the settings of docs/gateway.md where the page has them:
// a wrong key, a login, calls with progress, a cancellation, requests of the server, a large result, a new session, and a restart of the gateway.
//
//   npm ci --ignore-scripts --prefix features/interop
//   go build -o dist/ ./bootstrap/cmd/pasteport github.com/modelcontextprotocol/go-sdk/examples/server/everything
//   features/interop/node_modules/.bin/node features/interop/public.js dist/pasteport dist [NAME]
//
// A tap in front of each server records the requests that reach it. One of the servers is behind Caddy.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { openClientSite } from './client_site.js';
import { AnsweringCaller } from './clients/answering_caller.js';
import { freePort } from './free_port.js';
import { startConfigured } from './pasteport.js';
import { publicServers } from './public_servers.js';
import { report } from './report.js';
import { command } from './servers/start.js';
import { openTap } from './tap.js';
import { tryOut } from './try_out.js';

const steps = ['wrong key', 'connect', 'call', 'progress', 'cancel', 'server requests', '5 MiB', 'new session', 'restart', 'secrecy'];
const revision = '2025-11-25', limit = 60_000; // ms for each server
const examples = join(import.meta.dirname, '..', '..', 'docs', 'gateway'); // of the page
const noise = randomBytes(4 << 20).toString('base64'); // does not compress below 4 MiB

async function main(binary, folder, only) {
  const dir = await mkdtemp(join(tmpdir(), 'pasteport-public-'));
  const site = await openClientSite(dir), files = await openFiles();
  const outcomes = [];
  let log = '';
  try {
    for (const server of publicServers(folder, await writeFiles(dir)).filter(({ name, server }) => !only || `${name} ${server}`.includes(only))) {
      const home = await mkdtemp(join(dir, 'server-'));
      const world = { binary, site, files: files.url, home };
      outcomes.push(await tryOut({ settings: server.name, server: server.server }, (step) => behind(server, world, step), limit));
      log += world.gateway?.log() ?? '';
    }
  } finally {
    site.close();
    files.close();
    await rm(dir, { recursive: true });
  }
  return report(outcomes, steps, log);
}

// writeFiles returns a folder with a small and a large file.
async function writeFiles(dir) {
  const folder = await mkdtemp(join(dir, 'files-'));
  await writeFile(join(folder, 'hello.txt'), 'hello');
  await writeFile(join(folder, 'large.txt'), noise);
  return folder;
}

// openFiles serves a large file, the users of a fake Notion, and the credential of each other request.
async function openFiles() {
  const users = JSON.stringify({ object: 'list', results: [{ object: 'user', id: 'x', name: noise }] });
  const server = createServer((request, response) => {
    if (request.url === '/noise') {
      return response.end(Buffer.from(noise, 'base64'));
    }
    response.setHeader('Content-Type', 'application/json');
    response.end(request.url.startsWith('/v1/users?') || request.url === '/v1/users' ? users : JSON.stringify({ authorization: request.headers.authorization }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => { server.close(); server.closeAllConnections(); } };
}

// behind starts the server, a tap and the gateway with its file of settings, and runs every step. A server over stdio is a child of the gateway.
async function behind(server, world, step) {
  const port = await freePort();
  const upstream = server.command && await command(server.command.replaceAll('9000', port), server.environment?.(world.files))(port);
  const tap = upstream && await openTap(upstream.issuer);
  try {
    const own = await settled(server, world, tap && new URL(tap.url).port);
    world.gateway = await own.start();
    const caller = new AnsweringCaller({ ...world.gateway, token: server.answers, clientID: world.site.id });
    try {
      await use(caller, { server, tap, world, own }, step);
    } finally {
      await caller.close();
      await world.gateway.stop();
    }
  } finally {
    tap?.close();
    await upstream?.stop();
  }
}

// settled writes the settings, with the port of the tap, and the file of tokens that they may name.
async function settled(server, { binary, site, home }, tapped) {
  const file = join(home, 'gateway.yaml'), port = await freePort();
  const settings = server.settings.replaceAll('9000', tapped).replaceAll('/opt/my-server', examples);
  await writeFile(file, settings + 'max-request-body: 8388608\n');
  if (server.settings.includes('token-file')) {
    await writeFile(join(home, 'tokens'), execFileSync(binary, ['hash-token', '--subject', 'ada'], { input: server.answers[0] }), { mode: 0o600 });
  }
  return { start: () => startConfigured(binary, site.authority, home, port, file) };
}

async function use(caller, { server, tap, world, own }, step) {
  await step('wrong key', () => caller.refused(server.answers.map((value) => value.replace('my-first-key', 'my-wrong-key'))));
  await step('connect', () => caller.connect());
  const names = await caller.list();
  await step('call', async () => {
    assert(names.length > 0, 'it lists no tool');
    if (server.call) {
      assert.match((await caller.call(server.call)).text, server.call.result);
    }
    return `${names.length} tools`;
  });
  await optional(step, 'progress', server.progress, () => progress(caller, server.progress));
  await optional(step, 'cancel', server.progress ?? server.waits, () => cancel(caller, server, tap));
  await optional(step, 'server requests', server.requests, () => answer(caller, server.requests));
  await optional(step, '5 MiB', server.large, () => large(caller, server.large(world.files)));
  await step('new session', async () => {
    await caller.reconnect();
    assert.deepEqual(await caller.list(), names);
  });
  await step('restart', () => restart(caller, names, { tap, world, own }));
  await optional(step, 'secrecy', tap, () => tap.secrecy(caller.accessToken(), server.headers));
}

const optional = (step, name, has, act) => (has ? step(name, act) : step.without(name, 'none'));

// progress checks that notifications arrive while the tool runs.
async function progress(caller, tool) {
  const heard = [];
  await caller.call(tool, { onprogress: () => heard.push(performance.now()) });
  assert(heard.length > 1 && performance.now() - heard[0] > 400, `the notifications came late: ${heard}`);
  return `${heard.length} notifications`;
}

// cancel cancels a call at its first progress or question, and checks that the server gets the cancellation and the session continues.
async function cancel(caller, { progress: tool, waits }, tap) {
  const stop = new AbortController();
  caller.silent = tool ? undefined : () => stop.abort();
  const call = caller.call(tool ?? waits, { signal: stop.signal, onprogress: tool && (() => stop.abort()) });
  await assert.rejects(call, /abort/i);
  caller.silent = undefined;
  const how = await tap?.cancelled(revision);
  await caller.list();
  return how;
}

// answer calls tools that send a request to the client, and checks that they get its answer.
async function answer(caller, tools) {
  for (const tool of tools) {
    assert.match((await caller.call(tool)).text, tool.result);
  }
  return tools.map(({ result }) => (/sampled/.test(result) ? 'sampling' : 'elicitation')).join(', ');
}

async function large(caller, tool) {
  const { json, isError } = await caller.call(tool);
  assert(!isError && json.length >= tool.size, `the result has ${json.length} bytes: ${json.slice(0, 300)}`);
  return `${json.length} bytes`;
}

// restart restarts the gateway, and uses the same tokens, and the same session unless it was that of a child.
async function restart(caller, names, { tap, world, own }) {
  const session = caller.session();
  await world.gateway.stop();
  const before = world.gateway.log();
  const again = await own.start();
  world.gateway = { ...again, log: () => before + again.log() };
  if (tap) {
    assert.deepEqual(await caller.list(), names);
    assert.equal(caller.session(), session, 'the session changed');
  } else {
    await caller.reconnect();
    assert.deepEqual(await caller.list(), names);
  }
}

process.exit(await main(resolve(process.argv[2] ?? 'dist/pasteport'), resolve(process.argv[3] ?? 'dist'), process.argv[4]) ? 0 : 1);
