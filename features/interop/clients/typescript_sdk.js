// Both TypeScript SDKs over both transports. Neither can revoke tokens; this tests their reaction to revoked tokens.
import assert from 'node:assert/strict';
import * as v2 from '@modelcontextprotocol/client';
import { auth, UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { approve } from '../browser.js';
import { callTools, listTools } from '../demo_site.js';
import { Login } from '../login.js';
import { versionOf } from '../report.js';
import { revoke } from '../revoke.js';

// Version 1 of the SDK requests only the scope of the challenge, which never names offline_access; a program that needs refresh
// tokens requests it through the SDK's auth.
export const first = {
  name: '@modelcontextprotocol/sdk', Client, UnauthorizedError, revision: '2025-11-25',
  ask: (login, world) => auth(login, { serverUrl: world.mcp, scope: `${world.scope ?? 'mcp'} offline_access` }),
  callback: (answer) => [answer.get('code'), answer.get('iss')],
};
// Version 2 requests offline_access by itself.
export const second = {
  name: '@modelcontextprotocol/client', Client: v2.Client, UnauthorizedError: v2.UnauthorizedError,
  ask: () => {},
  callback: (answer) => [answer],
};
const auto = { versionNegotiation: { mode: 'auto' } };
export const pinned = { versionNegotiation: { mode: { pin: '2026-07-28' } } };

export const clients = [
  { ...first, transport: 'streamable', Transport: StreamableHTTPClientTransport },
  { ...first, transport: 'SSE', Transport: SSEClientTransport },
  { ...second, transport: 'streamable', Transport: v2.StreamableHTTPClientTransport, revision: '2025-11-25' },
  { ...second, transport: 'streamable, auto', Transport: v2.StreamableHTTPClientTransport, options: auto, revision: '2026-07-28' },
  { ...second, transport: 'streamable, pinned', Transport: v2.StreamableHTTPClientTransport, options: pinned, revision: '2026-07-28' },
  { ...second, transport: 'SSE', Transport: v2.SSEClientTransport, revision: '2025-11-25' },
].map(runnable);

export const registering = [
  { ...first, transport: 'streamable', Transport: StreamableHTTPClientTransport, registers: true },
  { ...first, transport: 'SSE', Transport: SSEClientTransport, registers: true },
  { ...second, transport: 'streamable', Transport: v2.StreamableHTTPClientTransport, revision: '2025-11-25', registers: true },
  { ...second, transport: 'streamable, auto', Transport: v2.StreamableHTTPClientTransport, options: auto, revision: '2026-07-28', registers: true },
].map(runnable);

function runnable(kind) {
  return { ...kind, version: versionOf(kind.name), run: (world, step) => new Program(world, kind).run(step) };
}

// Program is a program that uses the SDK.
export class Program {
  constructor(world, kind) {
    Object.assign(this, { world, kind, login: new Login(kind.registers ? undefined : world.clientID) });
  }

  async run(step) {
    await step('connect', () => this.signIn());
    await step('list', () => listTools(() => this.client.listTools()));
    await step('call', () => callTools((tool, input) => this.client.callTool({ name: tool, arguments: input })));
    await step('refresh', () => this.refresh());
    await step('reconnect', () => this.reconnect());
    await step('revoke', () => this.revoke());
  }

  get clientID() { return this.login.clientInformation().client_id; }

  async open() {
    const transport = new this.kind.Transport(new URL(this.world.mcp), { authProvider: this.login });
    const client = new this.kind.Client({ name: 'interop', version: '1.0.0' }, this.kind.options);
    try {
      await client.connect(transport);
    } catch (error) {
      return { transport, error };
    }
    await this.client?.close();
    return { client: (this.client = client), transport };
  }

  async signIn() {
    const { transport, error } = await this.open();
    assert(error instanceof this.kind.UnauthorizedError, `the first connection: ${error?.stack ?? 'it was let in without a token'}`);
    await this.kind.ask(this.login, this.world);
    const callback = await approve(this.login.asked.at(-1), this.world.token);
    await transport.finishAuth(...this.kind.callback(this.login.answer(callback)));
    await this.reopen();
    assert.equal(this.revisionSpoken(), this.kind.revision);
    assert.equal(this.clientID.startsWith(`${this.world.issuer}/oauth/clients/`), Boolean(this.kind.registers), this.clientID);
    return this.kind.revision;
  }

  // stepUp makes a call without the required scope, and approves the new request. The program continues with the same transport.
  // Version 1 of the SDK only refreshes if it has a refresh token, which adds no scope, and then fails; so it runs without one.
  async stepUp(call) {
    this.login.forgetRefreshToken();
    const { transport } = this.client, asked = this.login.asked.length;
    const error = await call().then(() => undefined, (refusal) => refusal);
    assert(error instanceof this.kind.UnauthorizedError, `without the scope: ${error?.stack ?? 'it was let in'}`);
    assert.equal(this.login.asked.length, asked + 1, 'the SDK did not ask for a new approval');
    const callback = await approve(this.login.asked.at(-1), this.world.token);
    await transport.finishAuth(...this.kind.callback(this.login.answer(callback)));
  }

  revisionSpoken() {
    return this.client.getNegotiatedProtocolVersion?.() ?? this.client.transport._protocolVersion;
  }

  async reopen() {
    const { error } = await this.open();
    assert.ifError(error);
  }

  // refresh revokes only the access token, which the SDK treats like an expired one. The SSE stream ends with
  // its token, and then the program reconnects.
  async refresh() {
    const before = this.login.tokens(), asked = this.login.asked.length;
    await revoke(this.world, before.access_token, this.clientID);
    if (this.kind.transport === 'SSE') {
      await this.reopen();
    }
    await listTools(() => this.client.listTools());
    const after = this.login.tokens();
    assert.notEqual(after.access_token, before.access_token);
    assert.notEqual(after.refresh_token, before.refresh_token);
    assert.equal(this.login.asked.length, asked, 'the person was asked again');
  }

  // reconnect refreshes and signs in again after the server secret was replaced, with the same client_id.
  async reconnect() {
    const before = this.clientID;
    this.world.rotate();
    await this.refresh();
    this.login.invalidateCredentials('tokens');
    await this.client.close();
    await this.signIn();
    await listTools(() => this.client.listTools());
    assert.equal(this.clientID, before);
  }

  async revoke() {
    const asked = this.login.asked.length;
    await revoke(this.world, this.login.tokens().refresh_token, this.clientID);
    const error = await this.refusal();
    assert(error instanceof this.kind.UnauthorizedError, `after the revocation: ${error?.stack ?? 'it still works'}`);
    assert.equal(this.login.tokens(), undefined, 'the SDK kept dead tokens');
    assert.equal(this.login.asked.length, asked + 1, 'the SDK did not ask for a new approval');
    await this.client.close();
    return 'plain HTTP; the client asks for a new approval';
  }

  async refusal() {
    if (this.kind.transport === 'SSE') {
      return (await this.open()).error;
    }
    return this.client.listTools().then(() => undefined, (error) => error);
  }
}
