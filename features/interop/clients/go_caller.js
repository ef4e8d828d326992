// The official Go SDK's client as a caller of the servers behind the gateway; the program goclient runs it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { approve } from '../browser.js';

// goCallers returns the callers of a built goclient.
export function goCallers(program, version) {
  return [{
    name: 'github.com/modelcontextprotocol/go-sdk', version, speaks: () => true,
    caller: (world, transport, revision) => new Caller(program, world, transport, revision),
  }];
}

export class Caller {
  asked = []; // authorization URLs that the client has opened
  #world;
  #child;
  #hear = () => {};
  #answer;
  #calls = 0;
  #said = '';

  constructor(program, world, transport, revision) {
    this.#world = world;
    const args = ['-mcp', world.mcp, '-client', world.clientID ?? '', '-revision', revision, ...(transport === 'SSE' ? ['-sse'] : [])];
    this.#child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child.stderr.on('data', (text) => { this.#said += text; });
    this.#child.on('error', (error) => this.#answer?.reject(error));
    this.#child.on('exit', () => this.#answer?.reject(new Error(`goclient exited: ${this.#said}`)));
    createInterface({ input: this.#child.stdout }).on('line', (line) => this.#take(JSON.parse(line)));
  }

  async #take({ open, heard, of, error, done }) {
    if (open) {
      this.asked.push(new URL(open));
      const callback = await approve(open, this.#world.token).catch((refusal) => this.#answer.reject(refusal));
      this.#tell({ do: 'arrive', callback });
    } else if (heard) {
      this.#hear(heard, of);
    } else if (error) {
      this.#answer.reject(new Error(error));
    } else {
      this.#answer.resolve(done);
    }
  }

  #tell(order) { this.#child.stdin.write(`${JSON.stringify(order)}\n`); }

  #order(order) {
    this.#answer = Promise.withResolvers();
    this.#tell(order);
    return this.#answer.promise;
  }

  connect() { return this.#order({ do: 'connect' }); }

  // reconnect opens a new session with the same tokens.
  reconnect() { return this.connect(); }

  list() { return this.#order({ do: 'list' }); }

  // stepUp is a call: the SDK opens the consent page for the missing scope, and repeats the call.
  stepUp(tool) { return this.call(tool, () => {}); }

  tokens() { return this.#order({ do: 'tokens' }); }

  session() { return this.#order({ do: 'session' }); }

  log() { return this.#order({ do: 'log' }); }

  call(tool, hear, signal) {
    const call = ++this.#calls;
    this.#hear = (kind, of) => {
      if (tool.logs ? kind === 'log' : of === call) {
        hear();
      }
    };
    signal?.addEventListener('abort', () => this.#tell({ do: 'cancel' }));
    return this.#order({ do: 'call', tool: tool.name, arguments: tool.arguments });
  }

  async close() {
    if (this.#child.exitCode === null) {
      this.#child.stdin.end();
      await once(this.#child, 'exit');
    }
  }
}
