// The table at the end of a run.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const steps = ['connect', 'list', 'call', 'refresh', 'revoke'];

// versionOf is the installed version of a package, as the lock file pins it.
export function versionOf(name) {
  return JSON.parse(readFileSync(join(import.meta.dirname, 'node_modules', name, 'package.json'), 'utf8')).version;
}

// report prints what every client did, and whether all of them did everything.
export function report(outcomes, log) {
  const failed = outcomes.filter((outcome) => outcome.error || steps.some((step) => !outcome.done[step]));
  for (const { client, transport, error } of failed) {
    console.error(`${client} (${transport}):`, error ?? 'it left steps out');
  }
  if (failed.length > 0) {
    console.error(`the server's log:\n${log}`);
  }
  table(['CLIENT', 'VERSION', 'TRANSPORT', ...steps.map((step) => step.toUpperCase())], outcomes.map(row));
  console.log(`${outcomes.length - failed.length} of ${outcomes.length} clients completed ${steps.join(', ')}`);
  return failed.length === 0;
}

function row({ client, version, transport, done }) {
  const failedAt = steps.find((step) => !done[step]);
  return [client, version, transport, ...steps.map((step) => {
    if (!done[step]) {
      return step === failedAt ? 'FAILED' : '-';
    }
    return done[step].note ? `ok (${done[step].note})` : 'ok';
  })];
}

// table aligns the columns.
export function table(head, rows) {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((line) => line[column].length)));
  for (const line of [head, ...rows]) {
    console.log(line.map((cell, column) => cell.padEnd(widths[column])).join('  ').trimEnd());
  }
}
