// server-everything behind Caddy, which takes the name ada and one password: node basic.js PORT, KEY in the environment.
import { spawn } from 'node:child_process';
import { randomBytes, scryptSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { node } from './start.js';

const script = join(import.meta.dirname, '..', 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const server = await node(script, 'streamableHttp')();
const dir = mkdtempSync(join(tmpdir(), 'pasteport-caddy-'));
// Caddy's parameters of scrypt. Its default, bcrypt, takes longer than a busy computer has.
const salt = randomBytes(16), hash = scryptSync(process.env.KEY, salt, 32, { N: 32768, r: 8, p: 1, maxmem: 1 << 26 });
const caddy = spawn('caddy', ['run', '--config', '-', '--adapter', 'caddyfile'], {
  env: { ...process.env, XDG_DATA_HOME: dir, XDG_CONFIG_HOME: dir }, stdio: ['pipe', 'ignore', 'inherit'],
});
caddy.stdin.end(`
{
  admin off
}
http://127.0.0.1:${process.argv[2]} {
  bind 127.0.0.1
  basicauth scrypt {
    ada ${hash.toString('base64')} ${salt.toString('base64')}
  }
  reverse_proxy ${new URL(server.issuer).host}
}
`);
process.on('SIGTERM', () => caddy.kill());
await once(caddy, 'exit');
rmSync(dir, { recursive: true });
await server.stop();
