// The steps of one client at the demo site. What the server answered decides whether a step worked, not the client's
// word.
import { mkdir, mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../free_port.js';
import { startPasteport } from '../pasteport.js';
import { openModel } from './model.js';
import { Person } from './person.js';
import { words } from './program.js';
import { openWitness } from './witness.js';

export const steps = ['login', 'list', 'call', 'restart', 'logout', 'refresh'];
const lifetime = 120_000; // ms of an access token in the last step; some clients renew it a minute before its end

// tryClient returns what was seen of a client whose packages are in the folder.
export async function tryClient(client, binary, folder, dir) {
  const seen = { name: client.name, version: client.version, library: Boolean(client.library), how: {}, steps: {} };
  await inWorld(['--self-registration'], async (world) => {
    await inTurn(client, world, seen);
    seen.how = identity(world);
  });
  if (seen.steps.login === 'yes') {
    seen.steps.refresh = await refresh();
  }
  return seen;

  // refresh logs in, calls, and calls again after the access token has expired. Without offline_access, a client gets a refresh
  // token only with refresh-tokens: registered. A client with a document runs without self-registration here.
  async function refresh() {
    const requested = seen.how.scope?.includes('offline_access');
    const tokens = ['--refresh-tokens', requested ? 'requested' : 'registered'];
    const settings = [`--self-registration=${seen.how.registers}`, '--access-token-ttl', `${lifetime / 1000}s`];
    let result;
    await inWorld([...settings, ...tokens], async (world) => {
      result = await attempt(client, world, 'login', ({ witness }, mark) => witness.loggedIn(mark));
      seen.how.redirects.push(world.person.visits.at(-1)?.redirect);
      const use = client.call ? 'call' : 'list', { visits } = world.person, before = visits.length;
      if (result === 'yes') {
        result = await attempt(client, world, use, ({ witness }, mark) => used(witness, mark, use));
      }
      if (result !== 'yes') {
        return;
      }
      await pause(lifetime);
      const holds = ({ witness }, mark) => witness.refreshed(mark) && used(witness, mark, use);
      result = await attempt(client, world, use, holds);
      if (visits.length > before) {
        result = 'no: the person must log in again';
      } else if (result === 'yes' && !requested) {
        result = 'with `refresh-tokens: registered`';
        seen.how.refreshTokens = true;
      }
    });
    return result;
  }

  async function inWorld(settings, act) {
    const home = await mkdtemp(join(dir, 'home-'));
    const [documents, project] = ['documents', 'project'].map((name) => join(home, name));
    await mkdir(documents);
    await mkdir(project);
    const model = await openModel(), port = await freePort(), witness = await openWitness(`http://127.0.0.1:${port}`);
    const own = ['--addr', `127.0.0.1:${port}`, '--issuer', witness.url, '--client-documents', documents, ...settings];
    const server = await startPasteport(binary, join(dir, 'no-authority.pem'), home, ...own);
    try {
      const world = { ...server, witness, model, home, documents, project, folder };
      world.person = new Person(world);
      world.env = client.env?.(world);
      await client.prepare?.(world);
      await act(world);
    } finally {
      witness.close();
      model.close();
      await server.stop();
    }
  }
}

async function inTurn(client, world, { steps }) {
  const { witness, person } = world;
  steps.login = await attempt(client, world, 'login', (_, mark) => witness.loggedIn(mark));
  if (steps.login !== 'yes') {
    return;
  }
  steps.list = client.list && await attempt(client, world, 'list', (_, mark) => used(witness, mark, 'list'));
  const called = (_, mark, output) => used(witness, mark, 'call') && output.includes(world.slug);
  steps.call = await attempt(client, world, 'call', called);
  steps.list ??= used(witness, 0, 'list') ? 'yes' : 'no';
  const again = person.visits.length, use = client.call ? 'call' : 'list';
  const resumed = (_, mark) => used(witness, mark, use) && person.visits.length === again;
  steps.restart = client.without?.restart ?? await attempt(client, world, use, resumed);
  steps.logout = await attempt(client, world, 'logout', (_, mark, output, error) => !error);
  if (steps.logout === 'yes') {
    steps.logout = witness.revoked(0) ? 'yes, and revokes' : 'yes, without revoking';
  }
}

const used = (witness, mark, use) => witness.asked(mark, `tools/${use}`);

// attempt runs one step and returns yes, or what failed.
async function attempt(client, world, name, holds) {
  if (!client[name]) {
    return client.without?.[name] ?? 'not run: no command';
  }
  const { mark } = world.witness;
  world.title = `Beans ${mark}${Date.now() % 1e6}`;
  world.slug = world.title.toLowerCase().replace(' ', '-');
  let output = '', error;
  try {
    output = await client[name](world) ?? '';
  } catch (failure) {
    error = failure;
    output = failure.printed ?? '';
  }
  let worked = holds(world, mark, output, error);
  for (let i = 0; i < 20 && !worked; i++) { // the witness sees the end of a response after the client has its answer
    await pause(100);
    worked = holds(world, mark, output, error);
  }
  if (!worked || process.env.VENDORS_OUTPUT) {
    const title = `-- ${client.name}, ${name}: ${worked ? 'yes' : 'no'}`;
    console.error([title, output, error?.message, world.witness.trail(mark)].filter(Boolean).join('\n'));
  }
  return worked ? 'yes' : `no: ${error?.message ?? words(output)}`;
}

// identity says how the client identified itself, and where it lets the browser go.
function identity({ person, witness, issuer }) {
  const { id, redirect, scope } = person.visits.at(-1) ?? {}, registers = Boolean(id?.startsWith(issuer));
  const document = registers ? undefined : id;
  return { registers, document, redirects: [redirect], scope, registration: witness.registration() };
}
