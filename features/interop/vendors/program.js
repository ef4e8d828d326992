// Runs a client's program with a folder of its own as its home, and lets the person approve what it asks for.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';

const limit = 240_000; // ms for each program, because some start slowly on a busy computer
const interval = 200;  // ms

// The variables that switch off telemetry and updates.
const quiet = Object.fromEntries([
  'DO_NOT_TRACK', 'NO_UPDATE_NOTIFIER', 'DISABLE_AUTOUPDATER', 'DISABLE_TELEMETRY', 'DISABLE_ERROR_REPORTING',
  'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC', 'OPENCODE_DISABLE_AUTOUPDATE', 'OPENCODE_DISABLE_MODELS_FETCH',
  'KILO_DISABLE_AUTOUPDATE', 'KILO_DISABLE_MODELS_FETCH', 'KILO_DISABLE_SESSION_INGEST', 'KILO_DISABLE_SHARE',
  'KILO_DISABLE_PRESENCE', 'KILO_DISABLE_DEFAULT_PLUGINS', 'AMP_SKIP_UPDATE_CHECK', 'KIMI_DISABLE_TELEMETRY',
  'NO_COLOR',
].map((name) => [name, '1']));

// run ends the program when enough holds; a program that ends by itself must exit with 0. It returns the output. In a
// terminal, the program gets each key once it has printed what the key answers.
export async function run(world, program, { enough = () => false, terminal = false, keys = [] } = {}) {
  const [file, ...args] = alone(terminal ? inTerminal(program) : program);
  const own = { TERM: 'xterm-256color', COPILOT_AUTO_UPDATE: 'false', HOME: world.home };
  const env = { ...own, ...quiet, ...world.person.environment, ...world.env };
  const stdio = [terminal ? 'pipe' : 'ignore', 'pipe', 'pipe'];
  const child = spawn(file, args, { cwd: world.project, env, detached: true, stdio });
  const output = { text: '', read: 0 }, left = [...keys], late = Date.now() + limit;
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text) => { output.text += stripVTControlCharacters(String(text)); });
  }
  const ended = once(child, 'close').then(([code]) => { output.code = code; }, (error) => { output.error = error; });
  try {
    while (output.code === undefined && !enough(output.text)) {
      await Promise.race([ended, pause(interval)]);
      await world.person.look(output.text);
      press(child, left, output);
      if (output.error || Date.now() > late) {
        throw output.error ?? new Error(`not done after ${limit / 1000} s`);
      }
    }
  } catch (error) {
    throw new Failure(words(error.message.replace(/\n[^]*/, '')), output.text);
  } finally {
    end(child);
  }
  if (output.code) {
    throw new Failure(words(output.text) || `exit code ${output.code}`, output.text);
  }
  return output.text;
}

// press presses the next key if the program has printed what it answers since the last one.
function press(child, left, output) {
  const [pattern, key] = left[0] ?? [];
  if (pattern?.test(output.text.slice(output.read))) {
    output.read = output.text.length;
    left.shift();
    child.stdin.write(key);
  }
}

// alone gives the program a process namespace of its own, so that what it starts ends with it.
function alone(program) {
  return ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc', ...program];
}

// inTerminal wraps the program with script(1), in a terminal wide enough for a URL.
function inTerminal(program) {
  const quoted = program.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
  return ['script', '-qfec', `stty cols 1000 rows 50; exec ${quoted}`, '/dev/null'];
}

export class Failure extends Error {
  constructor(message, printed) {
    super(message);
    this.printed = printed;
  }
}

const complaint = /error|fail|unauthor|expired|denied|log ?in|not found/i;

// words returns the line of the output that says what failed.
export function words(printed) {
  const lines = printed.split(/[\r\n]+/).map((line) => line.trim()).filter(Boolean);
  const line = lines.findLast((text) => complaint.test(text)) ?? lines.at(-1) ?? '';
  return line.replaceAll('|', '/').replace(/:\d{4,5}\b/g, ':PORT').slice(0, 120);
}

function end(child) {
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // it has ended
  }
}
