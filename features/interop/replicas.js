// Runs third-party clients against replicas behind a proxy without sticky sessions: each opens many connections, keeps them open
// together, and uses each again when all are open.
//
//   node replicas.js MCP_URL CLIENT_ID CONNECTIONS <token
import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { callers } from './clients/typescript_caller.js';
import { table } from './report.js';

const kinds = [
  ['SSE', '2024-11-05'], ['streamable', '2025-03-26'], ['streamable', '2025-06-18'], ['streamable', '2025-11-25'], ['streamable', '2026-07-28'],
];
const atOnce = 4; // one less than the limit of concurrent token checks per address
const connections = Number(process.argv[4]);

// inTurn runs a function for all items, a few at a time.
async function inTurn(all, few, act) {
  const waiting = [...all];
  await Promise.all(Array.from({ length: few }, async () => {
    for (let one = waiting.pop(); one; one = waiting.pop()) {
      await act(one);
    }
  }));
}

async function tryOut(client, world, transport, revision) {
  const open = Array.from({ length: connections }, () => client.caller(world, transport, revision));
  const failures = [];
  const attempt = (act) => (caller) => act(caller).catch((error) => failures.push(error));
  try {
    await inTurn(open, atOnce, attempt(async (caller) => assert.equal(await caller.connect(), revision)));
    await inTurn(open, 32, attempt(async (caller) => assert((await caller.list()).includes('list_articles'))));
    await inTurn(open, 32, attempt(async (caller) => assert(!(await caller.call({ name: 'list_articles', arguments: {} }, () => {})).isError)));
  } finally {
    await inTurn(open, 32, (caller) => caller.close().catch(() => {}));
  }
  return failures;
}

const world = { mcp: process.argv[2], clientID: process.argv[3], token: (await text(process.stdin)).trim() };
const rows = [];
for (const client of callers) {
  for (const [transport, revision] of kinds.filter(([, spoken]) => client.speaks(spoken))) {
    const failures = await tryOut(client, world, transport, revision);
    failures.slice(0, 3).forEach((failure) => console.error(client.name, transport, revision, failure));
    rows.push([client.name, client.version, transport, revision, String(connections), String(failures.length)]);
  }
}
table(['CLIENT', 'VERSION', 'TRANSPORT', 'REVISION', 'CONNECTIONS', 'FAILURES'], rows);
process.exit(rows.some((row) => row.at(-1) !== '0') ? 1 : 0);
