// Runs vendors' MCP clients from npm against a built pasteport binary, one after another, and writes what was seen into docs/clients.md: login, list, call,
// a new process, logout, and a call after the access token has expired.
//
//   npm ci --ignore-scripts --prefix features/interop
//   go build -o dist/ ./bootstrap/cmd/pasteport
//   features/interop/node_modules/.bin/node features/interop/vendors.js dist/pasteport [CLIENT...]
//
// Each client is installed into a temporary folder, without install scripts, and deleted after its run. It runs in a network namespace that has nothing but
// loopback. So the documents of clients are pinned, with the redirect URI that the client sends, and a stand-in answers for the model.
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { clients } from './vendors/clients.js';
import { tryClient } from './vendors/phases.js';
import { written } from './vendors/table.js';

const page = join(import.meta.dirname, '..', '..', 'docs', 'clients.md');
const installLimit = 600_000, runLimit = 1_200_000; // ms

async function main(binary, names) {
  const chosen = clients.filter(({ name }) => names.length === 0 || names.includes(name));
  for (const client of chosen) {
    console.log(`-- ${client.name} ${client.version}`);
    const dir = await mkdtemp(join(tmpdir(), 'pasteport-vendor-'));
    try {
      const seen = observe(client, binary, dir);
      console.log(JSON.stringify(seen, null, 1));
      await writeFile(page, written(await readFile(page, 'utf8'), seen));
    } finally {
      await rm(dir, { recursive: true });
    }
  }
}

// observe installs the client, and runs it without any network.
function observe(client, binary, dir) {
  try {
    install(client, dir);
    const inside = ['--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', process.execPath, import.meta.filename, '--inside', client.name, binary, dir];
    return JSON.parse(execFileSync('unshare', inside, { encoding: 'utf8', timeout: runLimit, stdio: ['ignore', 'pipe', 'inherit'] }));
  } catch (error) {
    return { name: client.name, version: client.version, missing: error.message.split('\n')[0] };
  }
}

function install({ package: name, version, node, more = [] }, dir) {
  const packages = [`${name}@${version}`, ...more, ...(node ? [`node-linux-${process.arch}@${node}`] : [])];
  const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error'];
  execFileSync('npm', ['install', '--prefix', dir, '--ignore-scripts', ...quiet, ...packages], { timeout: installLimit, stdio: ['ignore', 'ignore', 'inherit'] });
}

// inside runs the steps, and prints what was seen.
async function inside(name, binary, dir) {
  process.env.PATH = [join(dir, 'node_modules', '.bin'), join(import.meta.dirname, 'node_modules', '.bin'), process.env.PATH].join(delimiter);
  const client = clients.find((one) => one.name === name);
  process.stdout.write(JSON.stringify(await tryClient(client, binary, dir, await mkdtemp(join(dir, 'worlds-')))));
}

const [first, ...more] = process.argv.slice(2);
await (first === '--inside' ? inside(...more) : main(resolve(first ?? 'dist/pasteport'), more));
