// The server under test: a built binary that serves its demo site with the usual command.
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';

const startLimit = 15_000, stopLimit = 15_000; // ms

// startPasteport returns when the binary serves requests. The binary trusts metadata hosts with certificates of the authority.
export async function startPasteport(binary, authority, dir, ...settings) {
  const token = randomBytes(18).toString('base64url'), data = join(dir, 'data');
  const args = ['serve', '--dev', '--addr', '127.0.0.1:0', '--admin-addr', 'off', '--data', data, ...settings];
  const env = { ...process.env, PASTEPORT_BIND_TOOLS: undefined, PASTEPORT_DEMO_TOKEN: token, SSL_CERT_FILE: authority }; // for gateways only
  const server = await startServer(binary, args, env);
  const rotate = () => execFileSync(binary, ['keys', 'rotate', '--data', data]); // replaces the server secret while the server runs
  return { ...server, token, rotate };
}

// startFixtures serves the fixtures of the conformance suite instead of the demo site.
export async function startFixtures(binary, authority, dir) {
  const token = randomBytes(18).toString('base64url');
  const env = { ...process.env, FIXTURES_TOKEN: token, SSL_CERT_FILE: authority };
  const server = await startServer(binary, ['-data', dir], env);
  return { ...server, token };
}

// startGateway starts the binary as a gateway to a server without credentials, or with the given one.
export async function startGateway(binary, authority, dir, upstream, secret) {
  const token = randomBytes(18).toString('base64url'), tokens = join(dir, 'tokens');
  await writeFile(tokens, execFileSync(binary, ['hash-token', '--subject', 'interop'], { input: token }), { mode: 0o600 });
  const args = ['gateway', '--dev', '--addr', '127.0.0.1:0', '--admin-addr', 'off', '--data', join(dir, 'data'),
    '--upstream', upstream, '--verifier', 'file', '--token-file', tokens, '--credential', secret ? 'static' : 'none'];
  const own = secret && { PASTEPORT_UPSTREAM_SECRET: secret, PASTEPORT_SIGNING_SECRET: randomBytes(32).toString('base64url') };
  const server = await startServer(binary, args, { ...process.env, SSL_CERT_FILE: authority, ...own });
  return { ...server, token };
}

// startTrusting starts the binary as a gateway to a server that verifies the keys that people paste.
export function startTrusting(binary, authority, dir, upstream, ...more) {
  const args = ['gateway', '--dev', '--addr', '127.0.0.1:0', '--admin-addr', 'off', '--data', join(dir, 'data'), '--upstream', upstream, ...more];
  return startServer(binary, args, { ...process.env, SSL_CERT_FILE: authority });
}

// startConfigured starts the binary as a gateway with a file of settings. Its folder and port stay the same over restarts.
export function startConfigured(binary, authority, dir, port, file) {
  const own = { PASTEPORT_ADDR: `127.0.0.1:${port}`, PASTEPORT_ADMIN_ADDR: 'off', PASTEPORT_DATA: join(dir, 'data'), SSL_CERT_FILE: authority };
  return startServer(binary, ['gateway', '--dev', '--config', file], environmentWith(own), dir);
}

// startServer runs a program that prints "serving ISSUER …" when it serves, and ends on SIGTERM.
export async function startServer(program, args, env, cwd) {
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  child.stderr.on('data', (text) => { log += text; });
  const stopped = once(child, 'exit');
  stopped.catch(() => {}); // reported below
  const kill = setTimeout(() => child.kill('SIGKILL'), startLimit);
  const { issuer, lines } = await serving(child);
  clearTimeout(kill);
  if (!issuer) {
    throw new Error(`starting ${program}: it did not print "serving"\n${log}`);
  }
  const printed = (pattern) => lines.map((line) => pattern.exec(line)).find(Boolean);
  return { issuer, mcp: `${issuer}/mcp`, log: () => log, printed, stop: () => stop(child, stopped) };
}

// environmentWith adds variables to those of this process. Commands find the pinned packages and Node first.
export function environmentWith(more) {
  return { ...process.env, PATH: `${join(import.meta.dirname, 'node_modules', '.bin')}${delimiter}${process.env.PATH}`, ...more };
}

// serving returns the address that the program serves, undefined if it ends before, and its lines so far and from then on.
async function serving(child) {
  await Promise.race([once(child, 'spawn'), once(child, 'error').then(([error]) => { throw error; })]);
  const output = createInterface({ input: child.stdout }), lines = [];
  const issuer = await new Promise((found) => {
    output.on('line', (line) => {
      lines.push(line);
      const address = /^serving (\S+)/.exec(line)?.[1];
      if (address) {
        found(address);
      }
    });
    output.on('close', () => found());
  });
  return { issuer, lines };
}

// stop ends the server with SIGTERM and requires exit code 0.
async function stop(child, stopped) {
  const kill = setTimeout(() => child.kill('SIGKILL'), stopLimit);
  child.kill('SIGTERM');
  const [code, signal] = await stopped;
  clearTimeout(kill);
  if (code !== 0) {
    throw new Error(`the server exited with ${code ?? signal}`);
  }
}
