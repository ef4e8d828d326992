// The unmodified third-party MCP servers behind the gateway, with their properties.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { versionOf } from './report.js';
import { node, program } from './servers/start.js';

const here = import.meta.dirname;
const packages = join(here, 'node_modules/@modelcontextprotocol');
const example = (name) => node(join(packages, 'sdk/dist/esm/examples/server', `${name}.js`));
const reference = (transport) => node(join(packages, 'server-everything/dist/index.js'), transport);

export const revisions = ['2025-06-18', '2025-11-25', '2026-07-28'];
const withHandshake = revisions.slice(0, 2);

// Each of these tools sends ten messages in a second: as progress, or in the log. All log messages are awaited, because they do
// not name their call.
const operation = { name: 'trigger-long-running-operation', arguments: { duration: 1, steps: 10 }, spread: 500 };
const count = { name: 'count', arguments: {}, spread: 500 };
const notifications = { name: 'start-notification-stream', arguments: { interval: 100, count: 10 }, spread: 500, logs: 10 };
// This one sends three messages in 150 ms, and this one a single log message if the client has set a log level.
const progress = { name: 'test_tool_with_progress', arguments: {}, spread: 50 };
const log = { name: 'log', arguments: {}, logs: 1 };

// sdkVersion is the version of the Go SDK in go.mod.
export function sdkVersion() {
  const ask = ['list', '-m', '-f', '{{.Version}}', 'github.com/modelcontextprotocol/go-sdk'];
  return execFileSync('go', ask, { cwd: here, encoding: 'utf8' }).trim();
}

// serversOf lists the servers; the folder has the programs of the Go SDK. A run checks that a server supports exactly its revisions.
// Servers with suite are complete enough for the conformance suite.
export function serversOf(folder) {
  const names = ['sdk', 'server', 'server-everything'].map((name) => `${name} ${versionOf(`@modelcontextprotocol/${name}`)}`);
  const [first, second, everything] = names;
  const go = `Go SDK ${sdkVersion()}`;
  const compatible = example('sseAndStreamableHttpCompatibleServer');
  const ofGo = (name, ...more) => program(join(folder, name), (port) => ['-http', `127.0.0.1:${port}`, ...more]);
  return [
    { name: `TypeScript ${first}, simpleStreamableHttp`, start: example('simpleStreamableHttp'), tool: notifications, suite: true },
    { name: `TypeScript ${first}, sseAndStreamableHttpCompatibleServer`, start: compatible, tool: notifications },
    { name: everything, start: reference('streamableHttp'), tool: operation },
    { name: `TypeScript ${second}, tool of ours`, start: node(join(here, 'servers/typescript_2.js')), speaks: revisions,
      tool: count, suite: true },
    { name: `${go}, everything-server`, start: ofGo('everything-server'), speaks: revisions, tool: progress, suite: true },
    { name: `${go}, everything-server -stateless=false`, start: ofGo('everything-server', '-stateless=false'),
      tool: progress, suite: true },
    { name: `${go}, examples/server/everything`, start: ofGo('everything'), tool: log },
  ].map((server) => ({ transport: 'streamable', path: '/mcp', asked: revisions, speaks: withHandshake, ...server }));
}
