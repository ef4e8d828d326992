// mcp-remote, a bridge from stdio clients to HTTP servers. It registers itself unless it gets the URL of a document. It does not support revocation.
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { approve } from '../browser.js';
import { callTools, listTools } from '../demo_site.js';
import { freePort } from '../free_port.js';
import { revoke } from '../revoke.js';

const program = join(import.meta.dirname, '..', 'node_modules', 'mcp-remote', 'dist', 'proxy.js');

export const clients = [
  { transport: 'streamable', options: ['--transport', 'http-only'] },
  { transport: 'streamable, auto', options: ['--transport', 'http-only', '--protocol', 'auto'] },
  { transport: 'SSE', options: ['--transport', 'sse-only'] },
].map((kind) => ({ ...kind, name: 'mcp-remote', run: (world, step) => new Host(world, kind).run(step) }));

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
      await step('revoke', () => this.revoke());
    } catch (error) {
      throw new Error(`the output of mcp-remote:\n${this.said}`, { cause: error });
    } finally {
      await this.client?.close();
    }
  }

  async connect() {
    this.dir = await mkdtemp(join(this.world.dir, 'mcp-remote-'));
    this.port = await freePort();
    const connected = this.start();
    connected.catch(() => {}); // reported below
    await this.arrive(await approve(await this.nextApproval(), this.world.token));
    await connected;
  }

  // start gives mcp-remote a browser command that does nothing, because the run reads the URL from its output.
  start() {
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [program, this.world.mcp, String(this.port), '--host', '127.0.0.1', '--callback-path', '/callback',
        ...this.document(), ...this.kind.options],
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

  document() { return this.world.clientID ? ['--client-metadata-url', this.world.clientID] : []; }

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

  tokens() { return this.kept('_tokens.json'); }

  // clientID is the URL of the document or, without one, the id that the registration has returned.
  async clientID() { return this.world.clientID ?? (await this.kept('_client_info.json')).client_id; }

  async kept(name) {
    for (const file of await readdir(this.dir, { recursive: true })) {
      if (file.endsWith(name)) {
        return JSON.parse(await readFile(join(this.dir, file), 'utf8'));
      }
    }
    return undefined;
  }

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

  async revoke() {
    await revoke(this.world, (await this.tokens()).refresh_token, await this.clientID());
    this.client.listTools().catch(() => {}); // hangs until the next approval
    await this.nextApproval();
    return 'plain HTTP; the client asks for a new approval';
  }
}
