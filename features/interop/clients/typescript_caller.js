// Both TypeScript SDKs, as callers of the servers behind the gateway.
import * as v2 from '@modelcontextprotocol/client';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { LoggingMessageNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { versionOf } from '../report.js';
import { first, pinned, Program, second } from './typescript_sdk.js';

const newest = '2026-07-28';

// Version 1 of the SDK always offers its newest revision; a program that uses an older one replaces it.
function offering(Transport, revision) {
  return class extends Transport {
    send(message, options) {
      const offer = message.method === 'initialize' && { params: { ...message.params, protocolVersion: revision } };
      return super.send({ ...message, ...offer }, options);
    }
  };
}

const one = {
  speaks: (revision) => revision !== newest,
  kind: (transport, revision) => {
    const Transport = { streamable: StreamableHTTPClientTransport, SSE: SSEClientTransport }[transport];
    return { ...first, transport, revision, Transport: offering(Transport, revision) };
  },
  listen: (client, hear) => client.setNotificationHandler(LoggingMessageNotificationSchema, hear),
  call: (client, call, options) => client.callTool(call, undefined, options),
};

// optionsFor limits version 2 of the SDK to one revision.
export function optionsFor(revision) {
  return revision === newest ? pinned : { supportedProtocolVersions: [revision] };
}

const two = {
  speaks: () => true,
  kind: (transport, revision) => {
    const Transport = { streamable: v2.StreamableHTTPClientTransport, SSE: v2.SSEClientTransport }[transport];
    return { ...second, transport, revision, Transport, options: optionsFor(revision) };
  },
  listen: (client, hear) => client.setNotificationHandler('notifications/message', hear),
  call: (client, call, options) => client.callTool(call, options),
};

export const callers = [[first, one], [second, two]].map(([{ name }, sdk]) => ({
  name, version: versionOf(name), speaks: sdk.speaks,
  caller: (world, transport, revision) => new Caller(world, sdk, sdk.kind(transport, revision)),
}));

class Caller {
  #sdk;
  #program;
  #hear = () => {};

  constructor(world, sdk, kind) {
    this.#sdk = sdk;
    this.#program = new Program(world, kind);
  }

  get #client() { return this.#program.client; }

  // connect returns the negotiated revision.
  async connect() {
    const revision = await this.#program.signIn();
    this.#sdk.listen(this.#client, () => this.#hear());
    return revision;
  }

  // reconnect opens a new session with the same tokens.
  reconnect() { return this.#program.reopen(); }

  async list() { return (await this.#client.listTools()).tools.map((tool) => tool.name); }

  log() { return this.#client.setLoggingLevel('debug'); }

  // call receives the messages of the running tool.
  call(tool, hear, signal) {
    this.#hear = tool.logs ? hear : () => {};
    const onprogress = tool.logs ? undefined : hear;
    return this.#sdk.call(this.#client, { name: tool.name, arguments: tool.arguments }, { onprogress, signal });
  }

  // stepUp calls a tool that needs another scope, which the person approves.
  stepUp(tool) { return this.#program.stepUp(() => this.#sdk.call(this.#client, { name: tool.name, arguments: tool.arguments })); }

  tokens() { return this.#program.login.tokens(); }

  session() { return this.#client.transport.sessionId; }

  async close() { await this.#client?.close(); }
}
