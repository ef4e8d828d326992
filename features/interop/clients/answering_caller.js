// A program on the TypeScript SDK that also answers the requests of servers, with the same answers each time.
import assert from 'node:assert/strict';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { approve } from '../browser.js';
import { first, Program } from './typescript_sdk.js';

const answer = { role: 'assistant', model: 'none', stopReason: 'endTurn', content: { type: 'text', text: 'a sampled answer' } };
// Values for the fields of every form that the servers send.
const form = { name: 'an elicited name', check: true, random: 'an elicited name' };

export class AnsweringCaller {
  #program;
  #world;

  constructor(world) {
    this.#world = world;
    const options = { capabilities: { sampling: {}, elicitation: { form: {} }, roots: {} } };
    this.#program = new Program(world, { ...first, transport: 'streamable', Transport: StreamableHTTPClientTransport, options });
  }

  get #client() { return this.#program.client; }

  // refused fails to sign in with a wrong key.
  async refused(key) {
    const { transport } = await this.#program.open();
    await this.#program.kind.ask(this.#program.login, this.#world);
    await assert.rejects(approve(this.#program.login.asked.at(-1), key), /approving: 403/);
    await transport.close();
  }

  async connect() {
    await this.#program.signIn();
    this.#listen();
  }

  // reconnect opens a new session with the same tokens, without asking the person.
  async reconnect() {
    const asked = this.#program.login.asked.length;
    await this.#program.reopen();
    this.#listen();
    assert.equal(this.#program.login.asked.length, asked, 'the person was asked again');
  }

  #listen() {
    this.#client.setRequestHandler(CreateMessageRequestSchema, () => answer);
    this.#client.setRequestHandler(ElicitRequestSchema, ({ params }) => this.#fillIn(params));
  }

  // fillIn answers a form, or never with silent.
  #fillIn({ requestedSchema }) {
    if (this.silent) {
      this.silent();
      return new Promise(() => {});
    }
    const known = Object.keys(requestedSchema.properties).filter((name) => name in form);
    return { action: 'accept', content: Object.fromEntries(known.map((name) => [name, form[name]])) };
  }

  async list() { return (await this.#client.listTools()).tools.map((tool) => tool.name); }

  // call returns the whole result as JSON, and its texts.
  async call({ name, arguments: input }, options) {
    const result = await this.#client.callTool({ name, arguments: input }, undefined, options);
    return { ...result, json: JSON.stringify(result), text: result.content.map(({ text }) => text ?? '').join('\n') };
  }

  session() { return this.#client.transport.sessionId; }

  accessToken() { return this.#program.login.tokens().access_token; }

  async close() { await this.#client?.close(); }
}
