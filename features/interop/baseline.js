// Known failures with their reasons.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

const file = join(import.meta.dirname, 'baseline.json');

export class Baseline {
  #reasons = new Map(); // by key
  #seen = new Set();
  #unknown = [];

  // read takes a list of {server, reason, failures: {scenario: {check: [version]}}}, and keeps those of the servers.
  static async read(servers) {
    const baseline = new Baseline();
    const known = JSON.parse(await readFile(file, 'utf8'));
    for (const { server, reason, failures } of known.filter((row) => servers.includes(row.server))) {
      for (const [scenario, checks] of Object.entries(failures)) {
        for (const [check, versions] of Object.entries(checks)) {
          versions.forEach((version) => baseline.#add({ target: server, version, scenario, check }, reason));
        }
      }
    }
    return baseline;
  }

  #add(failure, reason) {
    const key = keyOf(failure);
    if (!reason || this.#reasons.has(key)) {
      throw new Error(`baseline.json: ${key} has no reason, or two`);
    }
    this.#reasons.set(key, reason);
  }

  // failed records a check that did not pass.
  failed(failure, message) {
    const key = keyOf(failure);
    this.#seen.add(key);
    if (!this.#reasons.has(key)) {
      this.#unknown.push(`${key}: ${message}`);
    }
  }

  // report prints the listed failures with their reasons, and returns whether exactly those failed.
  report() {
    const gone = [...this.#reasons.keys()].filter((key) => !this.#seen.has(key));
    for (const reason of new Set(this.#reasons.values())) {
      const keys = [...this.#reasons.keys()].filter((key) => this.#reasons.get(key) === reason);
      console.log(`\nlisted, ${keys.length} checks: ${reason}\n  ${keys.join('\n  ')}`);
    }
    for (const line of this.#unknown) {
      console.error(`FAILED, and not in baseline.json: ${line}`);
    }
    for (const key of gone) {
      console.error(`in baseline.json, and did not fail: ${key}`);
    }
    console.log(`\n${this.#seen.size} checks failed, ${this.#unknown.length} of them unexpectedly; ${gone.length} did not fail as listed`);
    return this.#unknown.length + gone.length === 0;
  }
}

function keyOf({ target, version, scenario, check }) {
  return [target, version, scenario, check].join(' / ');
}
