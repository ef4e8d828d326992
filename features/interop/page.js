// The parts of docs/gateway.md that begin with the reader's server.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const page = join(import.meta.dirname, '..', '..', 'docs', 'gateway.md');

// parts returns the sections that have a marked block of settings, with their marked blocks:
//
//   ```sh server        the command that starts the server on port 9000; none if the gateway starts it
//   ```yaml gateway     the settings of the gateway
//   ```text consent     what the person fills in, one line for each field; without this block, firstKey
export function parts() {
  return readFileSync(page, 'utf8').split(/^## /m).slice(1).map(part).filter(({ settings }) => settings);
}

// firstKey returns a key for the settings. Keys of a token file have 20 characters or more.
export function firstKey(settings) {
  return settings?.includes('token-file') ? 'in-a-file-my-first-key' : 'my-first-key';
}

function part(text) {
  const block = (mark) => new RegExp(`^\`\`\`${mark}\n(.*?)^\`\`\`$`, 'ms').exec(text)?.[1];
  const settings = block('yaml gateway');
  return {
    name: text.slice(0, text.indexOf('\n')),
    command: block('sh server'),
    settings,
    answers: (block('text consent') ?? firstKey(settings)).trim().split('\n'),
  };
}
