// Runs third-party clients against the MCP servers of docs/elsewhere.md, which ask "pasteport server" about each token: they log in, list, call,
// refresh, get another scope, and are refused after a revocation. oauth4webapi asks as a resource server.
//
//   npm ci --ignore-scripts --prefix features/interop
//   go build -o dist/ ./bootstrap/cmd/pasteport ./features/interop/goclient
//   go build -o dist/notes docs/elsewhere/server.go
//   features/interop/node_modules/.bin/node features/interop/elsewhere.js dist/pasteport dist
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { copyFile, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import * as oauth from 'oauth4webapi';
import { openClientSite } from './client_site.js';
import { goCallers } from './clients/go_caller.js';
import { Person, registering } from './clients/inspector.js';
import { callers } from './clients/typescript_caller.js';
import { freePort } from './free_port.js';
import { startServer } from './pasteport.js';
import { report } from './report.js';
import { revoke } from './revoke.js';
import { sdkVersion } from './servers.js';
import { tryOut } from './try_out.js';

const steps = ['connect', 'list', 'call', 'refresh', 'introspect', 'step up', 'revoke'];
const key = 'a-long-key-of-ada-that-nobody-guesses', insecure = { [oauth.allowInsecureRequests]: true };
const pages = join(import.meta.dirname, '..', '..', 'docs', 'elsewhere');

// openWorld starts the authorization server and an MCP server elsewhere.
async function openWorld(binary, site, dir, start) {
  const [port, own] = [await freePort(), await freePort()], secret = randomBytes(24).toString('base64url');
  const resource = `http://127.0.0.1:${port}/mcp`, people = join(dir, 'tokens'), settings = join(dir, 'pasteport.yaml');
  await writeFile(people, execFileSync(binary, ['hash-token', '--subject', 'ada', '--scope', 'notes:write'], { input: key }), { mode: 0o600 });
  await writeFile(settings, JSON.stringify({
    'resource-servers': [{ url: resource, name: 'Notes', scopes: ['notes:read = Read notes', 'notes:write notes:read = Add notes'], secret }],
    verifier: 'file', 'token-file': people, data: join(dir, 'data'), addr: `127.0.0.1:${own}`, 'admin-addr': 'off',
  }));
  const server = await startServer(binary, ['server', '--dev', '--config', settings], { ...process.env, SSL_CERT_FILE: site.authority });
  const notes = await start({ ...process.env, PORT: String(port), ISSUER: server.issuer, SECRET: secret }, dir);
  const stop = () => notes.kill().finally(server.stop);
  return { ...server, mcp: resource, scope: 'notes:read', secret, token: key, clientID: site.id, dir, stop };
}

// startNotes starts an example server, which serves until it is killed.
async function startNotes(program, args, env, cwd) {
  const server = await startServer(program, args, env, cwd);
  return { kill: () => server.stop().catch(() => {}) };
}

async function typescript(env, dir) {
  await copyFile(join(pages, 'server.mjs'), join(dir, 'server.mjs'));
  await symlink(join(import.meta.dirname, 'node_modules'), join(dir, 'node_modules'));
  return startNotes(process.execPath, ['server.mjs'], env, dir);
}

const go = (folder) => (env, dir) => startNotes(join(folder, 'notes'), [], env, dir);

// introspects asks as the MCP server does, with another implementation of RFC 7662.
async function introspects(world, token, active) {
  const issuer = new URL(world.issuer), self = { client_id: world.mcp };
  const server = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { ...insecure, algorithm: 'oauth2' }));
  const response = await oauth.introspectionRequest(server, self, oauth.ClientSecretBasic(world.secret), token, insecure);
  const claims = await oauth.processIntrospectionResponse(server, self, response);
  assert.equal(claims.active, active);
  return claims;
}

// inPython asks with the function of server.py; the rest of that file needs a package that the registries here do not have.
function inPython({ issuer, mcp, secret }, token) {
  const program = 'import json, server, sys; print(json.dumps(server.introspect(sys.argv[1])))';
  const env = { ...process.env, ISSUER: issuer, RESOURCE: mcp, SECRET: secret, PYTHONDONTWRITEBYTECODE: '1' };
  return JSON.parse(execFileSync('python3', ['-c', program, token], { cwd: pages, env }));
}

async function use(caller, world, step) {
  const write = { name: 'add_note', arguments: { text: 'buy milk' } }, read = { name: 'list_notes', arguments: {} };
  try {
    await step('connect', () => caller.connect());
    await step('list', async () => assert.deepEqual((await caller.list()).sort(), ['add_note', 'list_notes']));
    await step('call', async () => { await caller.call(read, () => {}); });
    const first = await caller.tokens();
    await step('refresh', async () => {
      await revoke(world, first.access_token);
      await caller.call(read, () => {});
      assert.notEqual((await caller.tokens()).access_token, first.access_token);
    });
    await step('introspect', async () => {
      const { access_token: token } = await caller.tokens();
      const claims = await introspects(world, token, true);
      assert.deepEqual([claims.sub, claims.client_id], ['ada', world.clientID]);
      assert.deepEqual(inPython(world, token), claims);
      await introspects(world, first.access_token, false);
    });
    await step('step up', async () => {
      if (!world.challenges) {
        const refused = await caller.call(write, () => {}).then((result) => result?.isError ?? false, () => true);
        const { notes } = await caller.call(read, () => {}).then((result) => ({ notes: JSON.stringify(result ?? '') }));
        assert(refused || !notes.includes('buy milk'), 'a narrow token has added a note');
        return 'refused by the tool';
      }
      await caller.stepUp(write);
      await caller.call(write, () => {});
    });
    await step('revoke', async () => {
      const { access_token: token } = await caller.tokens();
      await revoke(world, token);
      await introspects(world, token, false);
      const answer = await fetch(world.mcp, { method: 'POST', headers: { Authorization: `Bearer ${token}` }, body: '{}' });
      assert.equal(answer.status, 401);
    });
  } finally {
    await caller.close();
  }
}

// inspect uses MCP Inspector, whose page shows the first note.
async function inspect(world, step) {
  const person = new Person(world);
  try {
    await step('connect', () => person.connect());
    await step('list', () => person.openTools('add_note'));
    await step('call', async () => {
      await person.page.locator('button ::-p-text(list_notes)').click();
      await person.execute('welcome');
    });
    await step('refresh', async () => {
      const { access_token: before } = await person.tokens();
      await revoke(world, before, person.clientID);
      await person.page.locator('button ::-p-text(add_note)').click(); // the page shows no form again for the tool that it has just called
      await person.page.locator('button ::-p-text(list_notes)').click();
      await person.page.locator('button ::-p-text(Execute Tool)').click();
      for (const end = Date.now() + 30_000; (await person.tokens()).access_token === before; await setTimeout(100)) {
        assert(Date.now() < end, 'it got no new access token');
      }
    });
    await step('introspect', async () => { await introspects(world, (await person.tokens()).access_token, true); });
    await step('step up', async () => {
      const write = async () => {
        await person.page.locator('button ::-p-text(add_note)').click();
        await person.page.locator('::-p-aria([name="text"])').fill('buy milk');
        await person.page.locator('button ::-p-text(Execute Tool)').click();
      };
      await write();
      if (!world.challenges) {
        await person.page.locator('::-p-text(the app may not write notes)').wait();
        return 'refused by the tool';
      }
      await person.page.locator('::-p-text(Additional permissions required)').wait();
      await person.page.locator('button ::-p-text(Authorize)').click();
      await person.approve();
      await person.openTools('add_note');
      await write();
      await person.page.locator('::-p-text(added)').wait();
    });
    await step('revoke', () => person.revoke());
  } finally {
    await person.browser?.close();
    person.child?.kill();
  }
}

// examine runs doctor, whose check of an upstream is skipped, because there is none.
function examine(binary, world) {
  const args = ['doctor', world.mcp, '--token', '-', '--authorization-server', world.issuer, '--json'];
  const { checks } = JSON.parse(spawnSync(binary, args, { input: world.token, encoding: 'utf8' }).stdout);
  assert.deepEqual(checks.filter(({ status }) => status !== 'ok').map(({ name }) => name), ['upstream'], JSON.stringify(checks));
  console.log('doctor: 10 of 11 checks passed, 1 skipped');
}

async function main(binary, folder) {
  const clients = [...goCallers(join(folder, 'goclient'), sdkVersion()), ...callers], outcomes = [];
  let log = '';
  // The Go SDK's middleware names no error in its challenge, so the tool refuses, and no client asks for the scope.
  for (const [name, start, challenges] of [['server.mjs', typescript, true], ['server.go', go(folder), false]]) {
    const dir = await mkdtemp(join(tmpdir(), 'pasteport-elsewhere-'));
    const site = await openClientSite(dir);
    const world = { ...await openWorld(binary, site, dir, start), challenges };
    try {
      for (const client of clients) {
        const who = { server: name, client: `${client.name} ${client.version}` };
        outcomes.push(await tryOut(who, (step) => use(client.caller(world, 'streamable', '2025-11-25'), world, step)));
      }
      examine(binary, world);
      const [{ name: inspector, version, limit }] = registering;
      outcomes.push(await tryOut({ server: name, client: `${inspector} ${version}` }, (step) => inspect(world, step), limit));
    } finally {
      await world.stop();
      log += world.log();
      site.close();
      await rm(dir, { recursive: true });
    }
  }
  return report(outcomes, steps, log);
}

process.exit(await main(resolve(process.argv[2] ?? 'dist/pasteport'), resolve(process.argv[3] ?? 'dist')) ? 0 : 1);
