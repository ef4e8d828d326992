// The table of docs/clients.md between the markers, with a row for each client.
import { steps } from './phases.js';

const begin = '<!-- vendors: written by `.ci/run vendors` -->\n', end = '<!-- vendors: end -->\n';
const columns = ['client', 'identifies itself by', 'redirects to', 'needs in Pasteport', ...steps, 'date'];

// written returns the page with the client's row in place of the one before. The other rows stay.
export function written(page, seen) {
  const from = page.indexOf(begin) + begin.length, to = page.indexOf(end);
  if (from < begin.length || to < from) {
    throw new Error(`docs/clients.md has no markers ${begin}`);
  }
  const before = page.slice(from, to).split('\n').slice(2);
  const others = before.filter((text) => text && !text.startsWith(`| ${seen.name} `));
  const rows = [...others, row(seen)].sort((a, b) => a.toLowerCase().localeCompare(b.toLowerCase()));
  const table = [line(columns), `|${columns.map(() => '---|').join('')}`, ...rows, ''];
  return page.slice(0, from) + table.join('\n') + page.slice(to);
}

const line = (cells) => `| ${cells.join(' | ')} |`;

function row(seen) {
  const { name, version, how = {}, missing } = seen, date = new Date().toISOString().slice(0, 10);
  const results = steps.map((step) => seen.steps?.[step] ?? '–');
  if (missing) {
    return line([`${name} ${version}`, `not run: ${missing}`, ...columns.slice(3).map(() => '–'), date]);
  }
  const own = seen.library ? 'what the program configures' : redirect(how);
  return line([`${name} ${version}`, identity(how, seen.library), own, needs(how), ...results, date]);
}

function identity({ document, registers }, library) {
  if (document) {
    return library ? 'document of the program' : `document \`${document}\``;
  }
  return registers ? 'registration' : 'not seen';
}

// redirect leaves out the port if the client chooses it anew each time.
function redirect({ redirects = [] }) {
  const [uri, ...others] = redirects.filter(Boolean);
  return uri ? `\`${others.every((other) => other === uri) ? uri : uri.replace(/:\d+/, ':PORT')}\`` : '–';
}

function needs({ registers, refreshTokens }) {
  const refresh = refreshTokens && '`refresh-tokens: registered` to stay connected';
  return [registers && '`self-registration`', refresh].filter(Boolean).join('; ') || 'nothing';
}
