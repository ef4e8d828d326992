// The official conformance suite, which features/conformance pins and installs.
import { execFile } from 'node:child_process';
import { access, readdir, readFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

const runLimit = 35_000; // ms for all scenarios of one version
const programs = join(import.meta.dirname, '..', 'conformance', 'node_modules', '.bin');

// scenarios returns the suite's scenarios for servers by spec version, and those of extensions, which belong to no version.
export async function scenarios() {
  await access(join(programs, 'conformance'));
  const listed = await conformance('list', '--server');
  const byVersion = new Map(), extensions = [];
  for (const [, scenario, versions] of listed.matchAll(/^\s*- (\S+) \[(\S+)\]$/gm)) {
    for (const version of versions.split(',')) {
      if (version === 'extension') {
        extensions.push(scenario);
      } else {
        byVersion.set(version, [...(byVersion.get(version) ?? []), scenario]);
      }
    }
  }
  if (byVersion.size === 0) {
    throw new Error(`the suite lists no scenarios:\n${listed}`);
  }
  return { byVersion, extensions };
}

// check runs every scenario of one version and returns the checks of each.
export async function check(mcp, version, expected, results) {
  const said = await conformance('server', '--url', mcp, '--suite', 'all', '--spec-version', version, '--output-dir', results);
  const folders = await readdir(results);
  const found = new Map();
  for (const scenario of expected) {
    const [folder, ...more] = folders.filter((name) => new RegExp(`^server-${scenario}-\\d{4}-\\d\\d-\\d\\dT[-\\dZ]+$`).test(name));
    if (!folder || more.length > 0) {
      throw new Error(`the suite did not write exactly one result for ${scenario} at ${version}:\n${said}`);
    }
    found.set(scenario, JSON.parse(await readFile(join(results, folder, 'checks.json'), 'utf8')));
  }
  if (folders.length !== expected.length) {
    throw new Error(`at ${version} the suite ran ${folders.length} scenarios instead of ${expected.length}`);
  }
  return found;
}

// conformance returns the output of the suite; failed checks are in its results.
function conformance(...args) {
  const env = { ...process.env, PATH: programs + delimiter + process.env.PATH };
  return new Promise((resolve, reject) => {
    execFile(join(programs, 'conformance'), args, { env, timeout: runLimit, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      if (error && typeof error.code !== 'number') {
        reject(error);
      } else {
        resolve(stdout + stderr);
      }
    });
  });
}
