// The server under test: a built binary that serves its demo site, as its users start it.
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const startLimit = 15_000, stopLimit = 15_000; // ms

// startPasteport returns when the binary says that it serves. It trusts the metadata hosts that authority vouches for.
export async function startPasteport(binary, authority, dir) {
  const token = randomBytes(18).toString('base64url');
  const args = ['serve', '--dev', '--addr', '127.0.0.1:0', '--admin-addr', 'off', '--data', join(dir, 'data')];
  const env = { ...process.env, PASTEPORT_DEMO_TOKEN: token, SSL_CERT_FILE: authority };
  const server = await startServer(binary, args, env);
  return { ...server, token };
}

// startFixtures serves what the conformance suite looks for instead of the demo site.
export async function startFixtures(binary, authority, dir) {
  const token = randomBytes(18).toString('base64url');
  const env = { ...process.env, FIXTURES_TOKEN: token, SSL_CERT_FILE: authority };
  const server = await startServer(binary, ['-data', dir], env);
  return { ...server, token };
}

// startGateway puts the binary in front of a server that asks nobody for credentials, or for the one that is given.
export async function startGateway(binary, authority, dir, upstream, secret) {
  const token = randomBytes(18).toString('base64url'), tokens = join(dir, 'tokens');
  await writeFile(tokens, execFileSync(binary, ['hash-token', '--subject', 'interop'], { input: token }), { mode: 0o600 });
  const args = ['gateway', '--dev', '--addr', '127.0.0.1:0', '--admin-addr', 'off', '--data', join(dir, 'data'),
    '--upstream', upstream, '--verifier', 'file', '--token-file', tokens, '--credential', secret ? 'static' : 'none'];
  const own = secret && { PASTEPORT_UPSTREAM_SECRET: secret, PASTEPORT_SIGNING_SECRET: randomBytes(32).toString('base64url') };
  const server = await startServer(binary, args, { ...process.env, SSL_CERT_FILE: authority, ...own });
  return { ...server, token };
}

// startTrusting puts the binary in front of a server that knows the keys which people paste.
export function startTrusting(binary, authority, dir, upstream, ...more) {
  const args = ['gateway', '--dev', '--addr', '127.0.0.1:0', '--admin-addr', 'off', '--data', join(dir, 'data'), '--upstream', upstream, ...more];
  return startServer(binary, args, { ...process.env, SSL_CERT_FILE: authority });
}

// startServer runs a program that says "serving ISSUER …" when it does, and ends on SIGTERM.
export async function startServer(program, args, env) {
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  child.stderr.on('data', (text) => { log += text; });
  const stopped = once(child, 'exit');
  stopped.catch(() => {}); // a program that cannot be started is told below
  const kill = setTimeout(() => child.kill('SIGKILL'), startLimit);
  const issuer = await servingAddress(child);
  clearTimeout(kill);
  if (!issuer) {
    throw new Error(`starting ${program}: it never said that it serves\n${log}`);
  }
  return { issuer, mcp: `${issuer}/mcp`, log: () => log, stop: () => stop(child, stopped) };
}

async function servingAddress(child) {
  await Promise.race([once(child, 'spawn'), once(child, 'error').then(([error]) => { throw error; })]);
  for await (const line of createInterface({ input: child.stdout })) {
    const found = /^serving (\S+)/.exec(line);
    if (found) {
      child.stdout.resume();
      return found[1];
    }
  }
  return undefined;
}

// stop ends the server the way that an operator does, and wants it to leave with 0.
async function stop(child, stopped) {
  const kill = setTimeout(() => child.kill('SIGKILL'), stopLimit);
  child.kill('SIGTERM');
  const [code, signal] = await stopped;
  clearTimeout(kill);
  if (code !== 0) {
    throw new Error(`the server left with ${code ?? signal}`);
  }
}
