// MCP Inspector: its page in headless Chromium, with the Node program that serves the page and connects to the server.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import puppeteer from 'puppeteer-core';
import { callTools, listTools } from '../demo_site.js';
import { freePort } from '../free_port.js';
import { versionOf } from '../report.js';
import { revoke } from '../revoke.js';

const name = '@modelcontextprotocol/inspector';
const program = join(import.meta.dirname, '..', 'node_modules', name, 'clients', 'launcher', 'build', 'index.js');
const limit = 300_000; // ms, because the browser is slow on a busy computer
const loopbackOnly = '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'; // the page asks for fonts of another host

export const registering = [{
  name, version: versionOf(name), transport: 'streamable, in Chromium', registers: true, limit,
  run: (world, step) => new Person(world).run(step),
}];

// Person uses the page.
export class Person {
  constructor(world) { this.world = world; }

  async run(step) {
    try {
      await step('connect', () => this.connect());
      await step('list', () => listTools(() => this.list()));
      await step('call', () => callTools((tool, input) => this.call(tool, input)));
      await step('refresh', () => this.refresh());
      await step('reconnect', () => this.reconnect());
      await step('revoke', () => this.revoke());
    } catch (error) {
      throw new Error(`MCP Inspector shows at ${this.page?.url()}:\n${await this.page && await this.text()}`, { cause: error });
    } finally {
      await this.browser?.close();
      this.child?.kill();
    }
  }

  async connect() {
    this.dir = await mkdtemp(join(this.world.dir, 'inspector-'));
    this.address = await this.start();
    this.browser = await puppeteer.launch({ executablePath: chromium(), args: ['--no-sandbox', '--disable-back-forward-cache', loopbackOnly] });
    this.page = await this.browser.newPage();
    this.page.setDefaultTimeout(limit / 5);
    await this.open();
    this.clientID = await this.approve();
    assert(this.clientID.startsWith(`${this.world.issuer}/oauth/clients/`), this.clientID);
  }

  // start returns the address that the program prints.
  async start() {
    this.child = spawn(process.execPath, [program, '--web', '--server-url', this.world.mcp, '--transport', 'http'], {
      env: {
        PATH: process.env.PATH, HOME: this.dir, CLIENT_PORT: String(await freePort()), MCP_SANDBOX_PORT: '0',
        MCP_AUTO_OPEN_ENABLED: 'false', MCP_INSPECTOR_SECRET_STORE: 'file',
      },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    process.once('exit', () => this.child.kill()); // a run that takes too long does not end by itself
    await once(this.child, 'spawn');
    for await (const line of createInterface({ input: this.child.stdout })) {
      const found = /http:\S+MCP_INSPECTOR_API_TOKEN=\S+/.exec(line);
      if (found) {
        this.child.stdout.resume();
        return found[0];
      }
    }
    throw new Error('MCP Inspector printed no address');
  }

  // open opens the page, waits until it has its configuration, and presses the switch that connects to the server.
  async open() {
    await this.page.goto(this.address);
    await this.page.waitForSelector('::-p-text(Read-only session)');
    await this.page.evaluate((element) => element.click(), await this.page.waitForSelector('input[role=switch][aria-label^=Connect]'));
  }

  // approve answers the consent page, waits until the page of MCP Inspector is back, and returns the client_id.
  async approve() {
    await this.page.locator('input[name=bearer_token]').fill(this.world.token);
    const clientID = new URL(this.page.url()).searchParams.get('client_id');
    await this.page.locator('button[value=approve]').click();
    await this.page.locator('::-p-text(Authorization complete)').wait();
    return clientID;
  }

  async list() {
    await this.openTools('list_articles');
    return { tools: [...(await this.text()).matchAll(/^[a-z]+_[a-z]+$/gm)].map(([tool]) => ({ name: tool })) };
  }

  // openTools opens the tools, one of which is known, again if the page returns to its servers, as it does when the connection is complete.
  async openTools(known) {
    do {
      await this.page.locator('label ::-p-text(Tools)').click();
    } while (!await this.page.waitForSelector(`button ::-p-text(${known})`, { timeout: 2000 }).catch(() => undefined));
  }

  text() { return this.page.evaluate(() => document.body.innerText); }

  // call fills in the form of the tool, and returns what the page shows as its result.
  async call(tool, input) {
    await this.page.locator(`button ::-p-text(${tool})`).click();
    for (const [field, value] of Object.entries(input)) {
      await this.page.locator(`::-p-aria([name="${field}"])`).fill(value);
    }
    await this.execute();
    const [, shown] = /Structured Output[\s\d]*(\{[^]*?\n\})/.exec(await this.text());
    return { structuredContent: JSON.parse(shown) };
  }

  // execute presses the button, and once more if nothing happens: a press in the second in which the page reconnects its stream can be lost.
  async execute(shown = 'Structured Output') {
    const press = () => this.page.locator('button ::-p-text(Execute Tool)').click();
    const result = (limit) => this.page.locator(`::-p-text(${shown})`).setTimeout(limit).wait();
    await press();
    await result(10_000).catch(() => press());
    await result(30_000);
  }

  async tokens() {
    const { secrets } = JSON.parse(await readFile(join(this.dir, '.mcp-inspector', 'secrets.json'), 'utf8'));
    return JSON.parse(Object.entries(secrets).find(([key]) => key.includes(':tokens:'))[1]);
  }

  async refresh() {
    const before = await this.tokens();
    await revoke(this.world, before.access_token, this.clientID);
    await callTools((tool, input) => this.call(tool, input));
    const after = await this.tokens();
    assert.notEqual(after.access_token, before.access_token);
    assert.notEqual(after.refresh_token, before.refresh_token);
  }

  // reconnect refreshes and signs in again after the server secret was replaced, with the same client_id.
  async reconnect() {
    this.world.rotate();
    await this.refresh();
    await this.revoke();
    assert.equal(await this.approve(), this.clientID);
    await listTools(() => this.list());
  }

  async revoke() {
    await revoke(this.world, (await this.tokens()).refresh_token, this.clientID);
    await this.open();
    await this.page.locator('input[name=bearer_token]').wait();
    return 'plain HTTP; the client asks for a new approval';
  }
}

function chromium() {
  const found = process.env.PATH.split(delimiter).map((folder) => join(folder, 'chromium')).find(existsSync);
  assert(found, 'there is no chromium on the PATH');
  return found;
}
