// Runs vendors' MCP clients from npm against a built pasteport binary, one after another, and writes what was seen into
// docs/clients.md: login, list, call, a new process, logout, and a call after the access token has expired.
//
//   npm ci --ignore-scripts --prefix features/interop
//   go build -o dist/ ./bootstrap/cmd/pasteport
//   features/interop/node_modules/.bin/node features/interop/vendors.js dist/pasteport [PACKAGE...]
//
// Each client is installed into a temporary folder, without install scripts, and deleted after its run. It runs in a
// network namespace that has nothing but loopback. So the documents of clients are pinned, with the redirect URI that
// the client sends, and a stand-in answers for the model. VENDORS_OUTPUT=1 prints all that the clients print.
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { clients } from './vendors/clients.js';
import { tryClient } from './vendors/phases.js';
import { written } from './vendors/table.js';

const here = import.meta.dirname;
const page = join(here, '..', '..', 'docs', 'clients.md');
const installLimit = 600_000, runLimit = 1_800_000; // ms

async function main(binary, names) {
  for (const client of clients.filter((one) => names.length === 0 || names.includes(one.package))) {
    console.log(`-- ${client.name} ${client.version}`);
    const dir = await mkdtemp(join(tmpdir(), 'pasteport-vendor-'));
    try {
      const seen = observe(client, binary, dir);
      console.log(JSON.stringify(seen));
      await writeFile(page, written(await readFile(page, 'utf8'), seen));
      process.exitCode ||= seen.missing ? 1 : 0;
    } finally {
      await rm(dir, { recursive: true });
    }
  }
}

// observe installs the client, and runs it without any network.
function observe(client, binary, dir) {
  try {
    install(client, dir);
    const self = [process.execPath, import.meta.filename, '--inside', client.name, binary, dir];
    const apart = ['--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', ...self];
    const stdio = ['ignore', 'pipe', 'inherit'];
    return JSON.parse(execFileSync('unshare', apart, { encoding: 'utf8', timeout: runLimit, stdio }));
  } catch (error) {
    return { name: client.name, version: client.version, missing: error.message.split('\n')[0] };
  }
}

// install takes the Node version of the client if it needs another one, also for npm, which looks at it.
function install({ package: name, version, node, more = [] }, dir) {
  const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error'];
  const options = { env: environment(dir), timeout: installLimit, stdio: ['ignore', 'ignore', 'inherit'] };
  const npm = (...packages) => {
    execFileSync('npm', ['install', '--prefix', dir, '--ignore-scripts', ...quiet, ...packages], options);
  };
  if (node) {
    npm(`node-linux-${process.arch}@${node}`);
  }
  npm(`${name}@${version}`, ...more);
}

// environment lets programs find the client's Node first, and then the one that the lock file pins.
function environment(dir) {
  const programs = [dir, here].map((folder) => join(folder, 'node_modules', '.bin'));
  return { ...process.env, PATH: [...programs, process.env.PATH].join(delimiter) };
}

// inside runs the steps, and prints what was seen.
async function inside(name, binary, dir) {
  Object.assign(process.env, environment(dir));
  const client = clients.find((one) => one.name === name);
  const seen = await tryClient(client, binary, dir, await mkdtemp(join(dir, 'worlds-')));
  process.stdout.write(`${JSON.stringify(seen)}\n`);
}

const [first, ...more] = process.argv.slice(2);
await (first === '--inside' ? inside(...more) : main(resolve(first ?? 'dist/pasteport'), more));
