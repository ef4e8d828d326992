// Runs the official conformance suite in its server mode against servers directly and through the gateway of a built pasteport
// binary, and requires the same result of every check.
//
// It has the same requirements as gateway.js, and also needs the suite and the server of conformance.js:
//
//   npm ci --ignore-scripts --prefix features/conformance
//   go build -o dist/fixtures ./features/interop/fixtures
//   features/interop/node_modules/.bin/node features/interop/gateway_conformance.js dist/pasteport dist
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { openClientSite } from './client_site.js';
import { signIn } from './clients/oauth4webapi.js';
import { startFixtures, startGateway } from './pasteport.js';
import { openProxy } from './proxy.js';
import { table } from './report.js';
import { serversOf } from './servers.js';
import { check, scenarios } from './suite.js';

async function main(binary, folder) {
  const dir = await mkdtemp(join(tmpdir(), 'pasteport-gateway-conformance-'));
  const site = await openClientSite(dir);
  const rows = [], differences = [];
  try {
    const { byVersion } = await scenarios();
    // With bound tools, a gateway refuses what a server does not list, or adds during a session. These
    // servers lack tools of the suite, or add one.
    const foreign = serversOf(folder).filter(({ suite }) => suite && !process.env.PASTEPORT_BIND_TOOLS);
    for (const server of [...foreign, fixtures(join(folder, 'fixtures'), site)]) {
      const home = await mkdtemp(join(dir, 'server-'));
      await compare(server, byVersion, { binary, site, home, rows, differences });
    }
  } finally {
    site.close();
    await rm(dir, { recursive: true });
  }
  return report(rows, differences);
}

// fixtures is the server with the suite's fixtures; the gateway sends its token.
function fixtures(binary, site) {
  const start = async (dir) => {
    const server = await startFixtures(binary, site.authority, dir);
    const secret = await signIn({ ...server, clientID: site.id });
    const proxy = await openProxy(server.issuer, { token: secret });
    const stop = async () => {
      proxy.close();
      await server.stop();
    };
    return { ...server, secret, direct: `${proxy.url}/mcp`, stop };
  };
  return { name: 'fixtures, behind a guard', path: '/mcp', start };
}

// compare runs every version of the suite twice.
async function compare(server, byVersion, { binary, site, home, rows, differences }) {
  const upstream = await server.start(home);
  try {
    const to = upstream.issuer + server.path, own = await mkdtemp(join(home, 'gateway-'));
    const gateway = await startGateway(binary, site.authority, own, to, upstream.secret);
    const proxy = await openProxy(gateway.issuer, { token: await signIn({ ...gateway, clientID: site.id }) });
    try {
      for (const [version, expected] of [...byVersion].sort()) {
        const run = async (url, name) => check(url, version, expected, join(home, `${version} ${name}`));
        const directly = await run(upstream.direct ?? to, 'directly');
        const through = await run(`${proxy.url}/mcp`, 'through');
        rows.push(judge(`${server.name}, ${version}`, expected, directly, through, differences));
      }
    } finally {
      proxy.close();
      await gateway.stop();
    }
  } finally {
    await upstream.stop();
  }
}

// judge records each scenario whose checks differ.
function judge(where, expected, directly, through, differences) {
  let same = 0, passed = 0, all = 0;
  for (const scenario of expected) {
    const [before, after] = [directly, through].map((found) => found.get(scenario));
    if (isDeepStrictEqual(before.map(outcome), after.map(outcome))) {
      same++;
    } else {
      differences.push(`${where}, ${scenario}:\n  directly: ${tell(before)}\n  through:  ${tell(after)}`);
    }
    const judged = after.filter((c) => c.status !== 'INFO');
    all += judged.length;
    passed += judged.filter((c) => c.status === 'SUCCESS').length;
  }
  return [where, `${same}/${expected.length}`, `${passed}/${all}`];
}

const outcome = ({ id, status }) => `${status} ${id}`;

const tell = (checks) => checks.map((c) => `${outcome(c)} ${c.errorMessage ?? ''}`.trim()).join('; ');

function report(rows, differences) {
  table(['SERVER', 'SAME SCENARIOS', 'CHECKS PASSED'], rows);
  console.log(`\n${differences.length} scenarios differ`);
  differences.forEach((difference) => console.error(difference));
  return differences.length === 0;
}

process.exit(await main(resolve(process.argv[2] ?? 'dist/pasteport'), resolve(process.argv[3] ?? 'dist')) ? 0 : 1);
