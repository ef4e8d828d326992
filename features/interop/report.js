// The table at the end of a run.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

// versionOf returns the version of a package in the lock file.
export function versionOf(name) {
  return JSON.parse(readFileSync(join(import.meta.dirname, 'node_modules', name, 'package.json'), 'utf8')).version;
}

// report prints the results of every client, and returns whether all passed.
export function report(outcomes, steps, log) {
  const failed = outcomes.filter(({ done, error }) => error || steps.some((step) => !done[step]));
  for (const { who, error } of failed) {
    console.error(`${Object.values(who).join(', ')}:`, error ?? 'it skipped steps');
  }
  if (failed.length > 0) {
    console.error(`the server's log:\n${log}`);
  }
  const head = [...Object.keys(outcomes[0].who), ...steps].map((name) => name.toUpperCase());
  table(head, outcomes.map((outcome) => row(outcome, steps)));
  console.log(`${outcomes.length - failed.length} of ${outcomes.length} clients completed ${steps.join(', ')}`);
  return failed.length === 0;
}

function row({ who, done }, steps) {
  const failedAt = steps.find((step) => !done[step]);
  return [...Object.values(who), ...steps.map((step) => done[step] ?? (step === failedAt ? 'FAILED' : '-'))];
}

// table aligns the columns.
export function table(head, rows) {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((line) => line[column].length)));
  for (const line of [head, ...rows]) {
    console.log(line.map((cell, column) => cell.padEnd(widths[column])).join('  ').trimEnd());
  }
}
