// Runs both TypeScript SDKs with the same id in every request, as Claude's backend sends them, through a program behind the
// gateway, the demo site and a library host: 200 calls at once in one session, with progress, a cancellation and a
// stream that breaks and is resumed. Each call must get its own answer.
//
//   npm ci --ignore-scripts --prefix features/interop
//   go build -o dist/ ./bootstrap/cmd/pasteport ./features/interop/fixtures
//   features/interop/node_modules/.bin/node features/interop/same_ids.js dist/pasteport dist
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import * as v2 from '@modelcontextprotocol/client';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { openClientSite } from './client_site.js';
import { SameIDs } from './clients/same_ids.js';
import { optionsFor } from './clients/typescript_caller.js';
import { first, Program, second } from './clients/typescript_sdk.js';
import { startFixtures, startGateway, startPasteport } from './pasteport.js';
import { report, versionOf } from './report.js';
import { tryOut } from './try_out.js';

const revision = '2025-11-25', steps = ['connect', 'together', 'cancel', 'resume'], many = 200, limit = 120_000;
const everything = join(import.meta.dirname, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');

const kinds = [
  { ...first, Transport: StreamableHTTPClientTransport, call: (client, call, options) => client.callTool(call, undefined, options) },
  { ...second, Transport: v2.StreamableHTTPClientTransport, options: optionsFor(revision), revision,
    call: (client, call, options) => client.callTool(call, options) },
];

const unknown = (client, call, text) => call({ name: text }).catch(String);
const echo = async (client, call, text) => JSON.stringify(await call({ name: 'echo', arguments: { message: text } }));
const prompt = async (client, call, text) => JSON.stringify(
  await client.getPrompt({ name: 'test_prompt_with_arguments', arguments: { arg1: text, arg2: 'x' } }));

// Each server has a call whose answer repeats a text, and perhaps a tool that reports progress.
const servers = [
  { name: 'program behind the gateway', ask: echo, tool: { name: 'trigger-long-running-operation', arguments: { duration: 1, steps: 5 } }, parts: 5,
    start: ({ binary, site, dir }) => startGateway(binary, site.authority, dir, `stdio: ${process.execPath} ${everything} stdio`) },
  { name: 'serve', ask: unknown, start: ({ binary, site, dir }) => startPasteport(binary, site.authority, dir) },
  { name: 'library host', ask: prompt, tool: { name: 'test_tool_with_progress', arguments: {} }, parts: 3,
    start: ({ folder, site, dir }) => startFixtures(join(folder, 'fixtures'), site.authority, dir) },
];

async function main(binary, folder) {
  const dir = await mkdtemp(join(tmpdir(), 'pasteport-ids-'));
  const site = await openClientSite(dir), outcomes = [];
  let log = '';
  try {
    for (const server of servers) {
      const home = await mkdtemp(join(dir, 'server-'));
      const running = await server.start({ binary, folder, site, dir: home });
      try {
        for (const kind of kinds) {
          const who = { server: server.name, client: `${kind.name} ${versionOf(kind.name)}` };
          outcomes.push(await tryOut(who, (step) => use({ ...running, clientID: site.id }, server, kind, step), limit));
        }
      } finally {
        await running.stop();
      }
      log += running.log();
    }
  } finally {
    site.close();
    await rm(dir, { recursive: true });
  }
  return report(outcomes, steps, log);
}

async function use(world, server, kind, step) {
  const ids = new SameIDs();
  const Transport = class extends kind.Transport {
    constructor(url, options) { super(url, { ...options, fetch: ids.fetch }); }
  };
  const program = new Program(world, { ...kind, transport: 'streamable', Transport });
  const call = (what, options) => kind.call(program.client, what, options);
  try {
    await step('connect', () => program.signIn());
    await step('together', () => together(program.client, call, server));
    if (!server.tool) {
      step.without('cancel', 'no tool reports progress');
      step.without('resume', 'no tool reports progress');
      return;
    }
    await step('cancel', () => cancel(program.client, call, server));
    await step('resume', () => resume(call, server, ids));
  } finally {
    await program.client?.close();
  }
}

// together makes calls at once and checks each answer.
async function together(client, call, server) {
  await Promise.all(Array.from({ length: many }, (_, i) => i % 4 === 3 && server.tool ? withProgress(call, server) : ask(client, call, server, i)));
  return `${many} calls`;
}

async function ask(client, call, server, i) {
  const text = `call-${i}-`;
  assert((await server.ask(client, call, text)).includes(text), `the answer to call ${i} is that to another`);
}

async function withProgress(call, server) {
  const heard = [];
  await call(server.tool, { onprogress: ({ progress }) => heard.push(progress) });
  assert.equal(heard.length, server.parts, `got the progress ${heard}`);
  assert.deepEqual(heard, heard.toSorted((a, b) => a - b));
}

// cancel cancels one of many calls, and checks the others.
async function cancel(client, call, server) {
  const stop = new AbortController();
  const cancelled = call(server.tool, { onprogress: () => stop.abort(), signal: stop.signal });
  const others = Array.from({ length: 20 }, (_, i) => i % 2 ? withProgress(call, server) : ask(client, call, server, i));
  await assert.rejects(cancelled, /abort/i);
  await Promise.all(others);
}

// resume breaks the stream of a call after its first progress, and lets the SDK resume it.
async function resume(call, server, ids) {
  ids.breakNext();
  await Promise.all([withProgress(call, server), ...Array.from({ length: 5 }, () => withProgress(call, server))]);
  assert.equal(ids.resumed, 1);
}

const [binary, folder] = process.argv.slice(2).map((path) => resolve(path));
process.exitCode = await main(binary, folder) ? 0 : 1;
