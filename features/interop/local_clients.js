// Follows the part "My server has no keys" of docs/gateway.md: starts @modelcontextprotocol/server-everything and `pasteport gateway --dev` with the
// settings there, and runs the lines that the gateway prints for MCP Inspector and mcp-remote as they are, in a POSIX shell. A person approves in the
// browser, and the client calls a tool.
//
//   npm ci --ignore-scripts --prefix features/interop
//   go build -o dist/ ./bootstrap/cmd/pasteport
//   features/interop/node_modules/.bin/node features/interop/local_clients.js dist/pasteport
//
// npx finds the locked packages. MCP Inspector needs a chromium on the PATH.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { approve } from './browser.js';
import { Person } from './clients/inspector.js';
import { freePort } from './free_port.js';
import { parts } from './page.js';
import { environmentWith, startConfigured } from './pasteport.js';
import { report, versionOf } from './report.js';
import { command } from './servers/start.js';
import { tryOut } from './try_out.js';

const here = import.meta.dirname;
const { command: serve, settings, answers: [token] } = parts().find(({ name }) => name === 'My server has no keys');
const steps = ['connect', 'call'];
const limit = 300_000; // ms for each client, because the browser is slow on a busy computer

const clients = [
  { name: 'MCP Inspector', version: versionOf('@modelcontextprotocol/inspector'), run: (world, line, step) => new InspectorUser(world, line).run(step) },
  { name: 'mcp-remote', version: versionOf('mcp-remote'), run: useBridge },
];

async function main(binary) {
  const dir = await mkdtemp(join(tmpdir(), 'pasteport-local-'));
  const port = await freePort();
  const upstream = await command(serve.replaceAll('9000', port))(port);
  const outcomes = [];
  let log = '';
  try {
    const gateway = await openGateway(binary, dir, port);
    try {
      for (const client of clients) {
        outcomes.push(await tryOut({ client: client.name, version: client.version }, (step) => follow(client, gateway, dir, step), limit));
      }
    } finally {
      await gateway.stop();
      log = gateway.log();
    }
  } finally {
    await upstream.stop();
    await rm(dir, { recursive: true });
  }
  return report(outcomes, steps, log);
}

// openGateway writes the settings of the page and the file of tokens, as the page says, and starts the gateway.
async function openGateway(binary, dir, port) {
  const file = join(dir, 'gateway.yaml');
  await writeFile(file, settings.replaceAll('9000', port));
  await writeFile(join(dir, 'tokens'), execFileSync(binary, ['hash-token'], { input: token }), { mode: 0o600 });
  return { ...await startConfigured(binary, join(dir, 'no-authority.pem'), dir, await freePort(), file), token };
}

// follow runs the line that the gateway prints for the client. The line is there at the latest when the gateway answers requests.
async function follow(client, gateway, dir, step) {
  await fetch(gateway.mcp);
  const [printed, line] = gateway.printed(new RegExp(`^  ${client.name} +(.+)$`)) ?? assert.fail(`the gateway printed no line for ${client.name}`);
  console.log(printed);
  await client.run({ ...gateway, dir: await mkdtemp(join(dir, 'client-')) }, line, step);
}

// environmentOf lets npx find only the locked packages, and keeps the files of a client in its own folder.
const environmentOf = (world, more) => environmentWith({ HOME: world.dir, npm_config_offline: 'true', npm_config_update_notifier: 'false', ...more });

// InspectorUser runs the printed line, opens the page that it prints, and connects.
class InspectorUser extends Person {
  constructor(world, line) {
    super(world);
    Object.assign(this, { line, said: '' });
  }

  async run(step) {
    try {
      await step('connect', () => this.connect());
      await step('call', () => this.echo());
    } catch (error) {
      throw new Error(`MCP Inspector shows at ${this.page?.url()}:\n${this.page && await this.text()}\nand printed:\n${this.said}`, { cause: error });
    } finally {
      await this.browser?.close();
      this.end();
    }
  }

  // start tells the program not to open a browser itself, and to use a port that is free here.
  async start() {
    const env = environmentOf(this.world, {
      MCP_AUTO_OPEN_ENABLED: 'false', CLIENT_PORT: String(await freePort()), MCP_SANDBOX_PORT: '0', MCP_INSPECTOR_SECRET_STORE: 'file',
    });
    this.child = spawn('sh', ['-c', this.line], { cwd: here, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    this.child.stderr.on('data', (text) => { this.said += text; });
    process.once('exit', () => this.end()); // a run that takes too long does not end by itself
    await once(this.child, 'spawn');
    for await (const line of createInterface({ input: this.child.stdout })) {
      this.said += `${line}\n`;
      const found = /http:\S+MCP_INSPECTOR_API_TOKEN=\S+/.exec(line);
      if (found) {
        this.child.stdout.resume();
        return found[0];
      }
    }
    throw new Error('it printed no address');
  }

  // end ends the shell and what it has started.
  end() {
    if (this.child && this.child.exitCode === null && this.child.signalCode === null) {
      process.kill(-this.child.pid, 'SIGTERM');
    }
  }

  async echo() {
    await this.openTools('echo');
    await this.page.locator('button ::-p-text(echo)').click();
    await this.page.locator('::-p-aria([name="message"])').fill('hello');
    await this.execute('Echo: hello');
  }
}

// useBridge runs the printed line as a desktop program does that starts mcp-remote.
async function useBridge(world, line, step) {
  const transport = new StdioClientTransport({
    command: 'sh', args: ['-c', line], cwd: here, stderr: 'pipe', env: environmentOf(world, { MCP_REMOTE_CONFIG_DIR: world.dir, BROWSER: 'true' }),
  });
  const client = new Client({ name: 'interop', version: '1.0.0' });
  try {
    await step('connect', async () => {
      const page = authorizationPage(transport.stderr), connected = client.connect(transport);
      connected.catch(() => {}); // reported below
      const answer = await fetch(await approve(await page, world.token));
      assert.equal(answer.status, 200, await answer.text());
      await connected;
    });
    await step('call', async () => {
      const { content } = await client.callTool({ name: 'echo', arguments: { message: 'hello' } });
      assert.equal(content[0].text, 'Echo: hello');
    });
  } finally {
    await client.close();
  }
}

// authorizationPage returns the URL that mcp-remote prints for the browser.
async function authorizationPage(stderr) {
  let said = '';
  for await (const text of stderr) {
    said += text;
    const found = /^http\S+\/oauth\/authorize\?\S+$/m.exec(said);
    if (found) {
      stderr.resume();
      return found[0];
    }
  }
  throw new Error(`mcp-remote printed no page for the browser:\n${said}`);
}

process.exit(await main(resolve(process.argv[2] ?? 'dist/pasteport')) ? 0 : 1);
