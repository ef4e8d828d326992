// Runs the official conformance suite in its server mode, through a proxy that adds the bearer token, against the demo site of a
// built pasteport binary and against a server with the suite's fixtures, once for each spec version. An empty path leaves a
// server out.
//
//   npm ci --ignore-scripts --prefix features/conformance && npm ci --ignore-scripts --prefix features/interop
//   go build -o dist/pasteport ./bootstrap/cmd/pasteport && go build -o dist/fixtures ./features/interop/fixtures
//   features/interop/node_modules/.bin/node features/interop/conformance.js dist/pasteport dist/fixtures
//
// Exactly the checks in baseline.json must fail; each has its reason there.
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Baseline } from './baseline.js';
import { openClientSite } from './client_site.js';
import { signIn } from './clients/oauth4webapi.js';
import { startFixtures, startPasteport } from './pasteport.js';
import { openProxy } from './proxy.js';
import { table } from './report.js';
import { check, scenarios } from './suite.js';

async function main(pasteport, fixtures) {
  const dir = await mkdtemp(join(tmpdir(), 'pasteport-server-conformance-'));
  const site = await openClientSite(dir);
  const targets = [['demo site', startPasteport, pasteport], ['fixtures', startFixtures, fixtures]].filter(([, , binary]) => binary);
  const baseline = await Baseline.read(targets.map(([name]) => name));
  const rows = [];
  try {
    const known = await scenarios();
    for (const [target, start, binary] of targets) {
      const folder = join(dir, target);
      await mkdir(folder);
      const server = await start(resolve(binary), site.authority, folder);
      try {
        rows.push(...await checkServer({ ...server, clientID: site.id, target, folder }, known.byVersion, baseline));
      } catch (error) {
        throw new Error(`the server's log:\n${server.log()}`, { cause: error });
      } finally {
        await server.stop();
      }
    }
    return report(rows, known.extensions, baseline);
  } finally {
    site.close();
    await rm(dir, { recursive: true });
  }
}

async function checkServer(world, byVersion, baseline) {
  const proxy = await openProxy(world.issuer, { token: await signIn(world) });
  const rows = [];
  try {
    for (const [version, expected] of [...byVersion].sort()) {
      const found = await check(`${proxy.url}/mcp`, version, expected, join(world.folder, version));
      for (const [scenario, checks] of found) {
        rows.push(judge({ target: world.target, version, scenario }, checks, baseline));
      }
    }
  } finally {
    proxy.close();
  }
  return rows;
}

// judge counts passed checks and compares the others with the baseline: warnings and skipped checks are failures too.
function judge(where, checks, baseline) {
  const judged = checks.filter((c) => c.status !== 'INFO');
  const failed = judged.filter((c) => c.status !== 'SUCCESS');
  for (const c of failed) {
    baseline.failed({ ...where, check: c.id }, `${c.status} ${c.errorMessage ?? c.details?.message ?? ''}`);
  }
  if (judged.length === 0) {
    baseline.failed({ ...where, check: '(none)' }, 'the suite checked nothing');
  }
  const passed = `${judged.length - failed.length}/${judged.length}`;
  return [where.target, where.version, where.scenario, passed, failed.map((c) => c.id).join(', ')];
}

function report(rows, extensions, baseline) {
  table(['SERVER', 'SPEC VERSION', 'SCENARIO', 'PASSED', 'FAILED'], rows);
  console.log(`\nnot of any spec version, and so not run: ${extensions.join(', ')}`);
  return baseline.report();
}

process.exit(await main(process.argv[2] ?? 'dist/pasteport', process.argv[3] ?? 'dist/fixtures') ? 0 : 1);
