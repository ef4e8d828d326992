// mcp-remote, a bridge from stdio clients to HTTP servers. It registers itself unless it gets the URL of a metadata document, and cannot revoke.
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { approve } from '../browser.js';
import { callTools, listTools } from '../demo_site.js';
import { freePort } from '../free_port.js';
import { versionOf } from '../report.js';
import { revoke } from '../revoke.js';

const limit = 90_000; // ms, because it starts a program several times
const program = join(import.meta.dirname, '..', 'node_modules', 'mcp-remote', 'dist', 'proxy.js');

export const clients = [
  { transport: 'streamable', options: ['--transport', 'http-only'] },
  { transport: 'streamable, auto', options: ['--transport', 'http-only', '--protocol', 'auto'] },
  { transport: 'SSE', options: ['--transport', 'sse-only'] },
].map(runnable);

export const registering = [
  { transport: 'default', options: [] },
  { transport: 'SSE', options: ['--transport', 'sse-only'] },
].map((kind) => runnable({ ...kind, registers: true }));

function runnable(kind) {
  return { ...kind, name: 'mcp-remote', version: versionOf('mcp-remote'), limit, run: (world, step) => new Host(world, kind).run(step) };
}

// Host is a desktop program that starts mcp-remote and uses it over stdio.
class Host {
  constructor(world, kind) {
    Object.assign(this, { world, kind, said: '', heard: () => {} });
  }

  async run(step) {
    try {
      await step('connect', () => this.connect());
      await step('list', () => listTools(() => this.client.listTools()));
      await step('call', () => callTools((name, input) => this.client.callTool({ name, arguments: input })));
      await step('refresh', () => this.refresh());
      await step('reconnect', () => this.reconnect());
      await step('revoke', () => this.revoke());
    } catch (error) {
      throw new Error(`the output of mcp-remote:\n${this.said}`, { cause: error });
    } finally {
      await this.client?.close();
    }
  }

  async connect() {
    this.dir = await mkdtemp(join(this.world.dir, 'mcp-remote-'));
    this.identity = this.kind.registers ? [] : [String(await freePort()), '--host', '127.0.0.1', '--callback-path', '/callback',
      '--client-metadata-url', this.world.clientID];
    await this.signIn();
  }

  async signIn() {
    const connected = this.start();
    connected.catch(() => {}); // reported below
    const page = await this.nextApproval();
    assert.equal(page.includes(encodeURIComponent(`${this.world.issuer}/oauth/clients/`)), Boolean(this.kind.registers), page);
    await this.arrive(await approve(page, this.world.token));
    await connected;
  }

  // start gives mcp-remote a browser command that does nothing, because the run reads the URL from its output.
  start() {
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [program, this.world.mcp, ...this.identity, ...this.kind.options],
      env: { PATH: process.env.PATH, HOME: this.dir, MCP_REMOTE_CONFIG_DIR: this.dir, BROWSER: 'true' },
      stderr: 'pipe',
    });
    transport.stderr.on('data', (text) => {
      this.said += text;
      this.heard();
    });
    this.client = new Client({ name: 'interop', version: '1.0.0' });
    return this.client.connect(transport);
  }

  // nextApproval waits until mcp-remote prints another authorization URL.
  async nextApproval() {
    this.pages = (this.pages ?? 0) + 1;
    for (;;) {
      const pages = this.said.match(/^http\S+\/oauth\/authorize\?\S+$/gm) ?? [];
      if (pages.length >= this.pages) {
        return pages[this.pages - 1];
      }
      await new Promise((heard) => { this.heard = heard; });
    }
  }

  // arrive follows the redirect to the callback, where mcp-remote listens.
  async arrive(callback) {
    const answer = await fetch(callback);
    assert.equal(answer.status, 200, await answer.text());
  }

  // file returns the path of a file in which mcp-remote keeps its state.
  async file(ending) {
    const files = await readdir(this.dir, { recursive: true });
    return join(this.dir, files.find((file) => file.endsWith(ending)));
  }

  async read(ending) { return JSON.parse(await readFile(await this.file(ending), 'utf8')); }

  tokens() { return this.read('_tokens.json'); }

  async clientID() { return this.kind.registers ? (await this.read('_client_info.json')).client_id : this.world.clientID; }

  // refresh revokes only the access token. The SSE stream ends with its token, and then the host restarts mcp-remote.
  async refresh() {
    const before = await this.tokens();
    await revoke(this.world, before.access_token, await this.clientID());
    if (this.kind.transport === 'SSE') {
      await this.client.close();
      await this.start();
    }
    await listTools(() => this.client.listTools());
    const after = await this.tokens();
    assert.notEqual(after.access_token, before.access_token);
    assert.notEqual(after.refresh_token, before.refresh_token);
  }

  // reconnect refreshes and signs in again after the server secret was replaced, with the same client_id.
  async reconnect() {
    const before = await this.clientID();
    this.world.rotate();
    await this.refresh();
    await this.client.close();
    await rm(await this.file('_tokens.json'));
    await this.signIn();
    await listTools(() => this.client.listTools());
    assert.equal(await this.clientID(), before);
  }

  async revoke() {
    await revoke(this.world, (await this.tokens()).refresh_token, await this.clientID());
    this.client.listTools().catch(() => {}); // hangs until the next approval
    await this.nextApproval();
    return 'plain HTTP; the client asks for a new approval';
  }
}
