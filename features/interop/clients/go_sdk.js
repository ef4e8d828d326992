// The official Go SDK's client, which registers itself; the program goclient runs it.
import assert from 'node:assert/strict';
import { callTools, listTools } from '../demo_site.js';
import { revoke } from '../revoke.js';
import { sdkVersion } from '../servers.js';
import { Caller } from './go_caller.js';

const revision = '2025-11-25';

// registering returns the client of a built goclient.
export function registering(program) {
  return [{
    name: 'github.com/modelcontextprotocol/go-sdk', version: sdkVersion(), transport: 'streamable', registers: true,
    run: (world, step) => new Program(program, world).run(step),
  }];
}

class Program {
  constructor(program, world) {
    Object.assign(this, { world, caller: new Caller(program, { ...world, clientID: undefined }, 'streamable', revision) });
  }

  async run(step) {
    try {
      await step('connect', () => this.connect());
      await step('list', () => this.list());
      await step('call', () => callTools((name, input) => this.caller.call({ name, arguments: input }, () => {})));
      await step('refresh', () => this.refresh());
      await step('reconnect', () => this.reconnect());
      await step('revoke', () => this.revoke());
    } finally {
      await this.caller.close();
    }
  }

  async connect() {
    const revision = await this.caller.connect();
    assert(this.clientID.startsWith(`${this.world.issuer}/oauth/clients/`), this.clientID);
    return revision;
  }

  get clientID() { return this.caller.asked.at(-1).searchParams.get('client_id'); }

  async list() { return listTools(async () => ({ tools: (await this.caller.list()).map((name) => ({ name })) })); }

  // refresh compares the tokens, because goclient refreshes before each request.
  async refresh() {
    const before = await this.caller.tokens(), asked = this.caller.asked.length;
    await this.list();
    const after = await this.caller.tokens();
    assert.notEqual(after.access_token, before.access_token);
    assert.notEqual(after.refresh_token, before.refresh_token);
    assert.equal(this.caller.asked.length, asked, 'the person was asked again');
  }

  // reconnect refreshes under a new server secret, and opens a new session with the same client_id.
  async reconnect() {
    this.world.rotate();
    await this.refresh();
    await this.caller.reconnect();
    await this.list();
    assert.equal(this.caller.asked.length, 1, 'the person was asked again');
  }

  // revoke opens a new session in the end, because the SDK keeps the session of the grant that has ended.
  async revoke() {
    await revoke(this.world, (await this.caller.tokens()).refresh_token, this.clientID);
    await assert.rejects(this.list(), /session not found/);
    assert.equal(this.caller.asked.length, 2, 'the SDK did not ask for a new approval');
    await this.caller.reconnect();
    await this.list();
    return 'plain HTTP; the client registers again and asks for a new approval';
  }
}
