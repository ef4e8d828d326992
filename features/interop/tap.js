// Records the requests that reach a server behind the gateway.
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { openProxy } from './proxy.js';

// The allowed headers, of requests and connections.
const harmless = new RegExp(`^(${[
  'host', 'connection', 'content-(type|length)', 'transfer-encoding', 'accept(-encoding|-language)?', 'user-agent',
  'cache-control', 'pragma', 'last-event-id', 'mcp-.+', 'trace(parent|state)', 'x-request-id',
].join('|')})$`);
const noticeLimit = 5_000; // ms

// openTap starts a proxy in front of a server that records every request.
export async function openTap(target) {
  const tap = new Tap();
  const { url, close } = await openProxy(target, { watch: (incoming, body) => tap.see(incoming, body) });
  return Object.assign(tap, { url, close });
}

class Tap extends EventEmitter {
  requests = [];

  see({ method, url, headers }, body) {
    const request = { method, url, headers, message: parse(body), hungUp: false };
    this.requests.push(request);
    this.emit('news');
    return (hungUp) => {
      request.hungUp = hungUp;
      this.emit('news');
    };
  }

  // forget clears the records for the next client.
  forget() { this.requests = []; }

  // cancelled waits until the server gets the cancellation of its latest call, in the form of the revision.
  async cancelled(revision) {
    const limit = AbortSignal.timeout(noticeLimit);
    const call = this.requests.findLast(({ message }) => message?.method === 'tools/call');
    const cancels = ({ message }) => message?.method === 'notifications/cancelled' && message.params.requestId === call.message.id;
    const [how, known] = revision < '2026-07-28' ? ['told', () => this.requests.some(cancels)] : ['hung up', () => call.hungUp];
    while (!known()) {
      await once(this, 'news', { signal: limit });
    }
    return how;
  }

  // secrecy checks that no forbidden header and no token reached the server; it may get the headers of its credential.
  secrecy(secret, credential = []) {
    for (const { method, url, headers } of this.requests) {
      const odd = Object.keys(headers).filter((name) => !harmless.test(name) && !credential.includes(name));
      assert.deepEqual(odd, [], `${method} ${url} has headers that must not reach the server`);
    }
    assert(!JSON.stringify(this.requests).includes(secret), 'a secret reached the server');
    return `${this.requests.length} requests`;
  }
}

function parse(body) {
  try {
    return JSON.parse(body);
  } catch {
    return undefined; // a GET, or another body
  }
}
