// Starts third-party programs.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../free_port.js';
import { environmentWith, startServer } from '../pasteport.js';

const startLimit = 15_000, stopLimit = 5_000; // ms
const here = join(import.meta.dirname, '..');
const onLoopback = join(import.meta.dirname, 'on_loopback.js');

// node returns a function that starts a server on Node.
export function node(script, ...args) {
  return () => startServer(process.execPath, ['--import', onLoopback, script, ...args], process.env);
}

// program returns a function that starts a program with a port argument that does not report when it serves.
export function program(path, args) {
  return async () => {
    const port = await freePort(), child = spawn(path, args(port), { stdio: 'ignore' });
    const left = once(child, 'exit');
    const stop = async () => {
      child.kill('SIGTERM');
      await left;
    };
    await Promise.race([accepting(port, AbortSignal.timeout(startLimit)), left.then(() => { throw new Error(`${path} exited`); })]);
    return { issuer: `http://127.0.0.1:${port}`, stop };
  };
}

// command returns a function that runs a shell command in the folder of the packages until the port accepts connections.
export function command(line, environment) {
  return async (port) => {
    const child = spawn('bash', ['-c', line], { cwd: here, detached: true, stdio: ['ignore', 'ignore', 'pipe'], env: environmentWith(environment) });
    let said = '';
    child.stderr.on('data', (text) => { said += text; });
    const left = once(child, 'exit');
    const stop = async () => {
      process.kill(-child.pid, 'SIGTERM'); // the shell and what it has started
      const kill = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), stopLimit);
      await left;
      clearTimeout(kill);
    };
    await Promise.race([accepting(port, AbortSignal.timeout(startLimit)), left.then(() => { throw new Error(`${line}: it exited\n${said}`); })]);
    return { issuer: `http://127.0.0.1:${port}`, stop };
  };
}

async function accepting(port, limit) {
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    try {
      await once(socket, 'connect');
      return;
    } catch {
      await pause(20, undefined, { signal: limit });
    } finally {
      socket.destroy();
    }
  }
}
