// Runs a client's program with a folder of its own as its home, and lets the person approve what it asks for.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';

const limit = 240_000; // ms for each program
const interval = 200;  // ms

// The variables that switch off telemetry and updates.
const quiet = {
  DO_NOT_TRACK: '1', NO_UPDATE_NOTIFIER: '1', CI: '', NO_COLOR: '1', TERM: 'xterm-256color', COLUMNS: '2000',
  DISABLE_AUTOUPDATER: '1', DISABLE_TELEMETRY: '1', DISABLE_ERROR_REPORTING: '1', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1', KILO_DISABLE_AUTOUPDATE: '1', KILO_DISABLE_MODELS_FETCH: '1',
  KILO_DISABLE_SESSION_INGEST: '1', KILO_DISABLE_SHARE: '1', KILO_DISABLE_PRESENCE: '1', KILO_DISABLE_DEFAULT_PLUGINS: '1', COPILOT_AUTO_UPDATE: 'false', AMP_SKIP_UPDATE_CHECK: '1',
  KIMI_DISABLE_TELEMETRY: '1',
};

// run ends the program when enough() holds; a program that ends by itself must exit with 0. It returns the output. A program in a
// terminal gets the keys once it has printed what they answer.
export async function run(world, program, { env = {}, enough = () => false, terminal = false, keys = [] } = {}) {
  const own = Object.fromEntries(['LANG', 'USER'].map((name) => [name, process.env[name]]).filter(([, value]) => value));
  const environment = { ...own, ...quiet, HOME: world.home, ...world.person.environment, ...env };
  const [file, ...args] = terminal ? inTerminal(program) : program, stdio = [terminal ? 'pipe' : 'ignore', 'pipe', 'pipe'];
  const child = spawn(file, args, { cwd: world.project, env: environment, detached: true, stdio });
  const answers = [...keys];
  let printed = '', code, read = 0;
  const add = (text) => { printed += stripVTControlCharacters(String(text)); };
  child.stdout.on('data', add);
  child.stderr.on('data', add);
  const ended = Promise.race([once(child, 'close'), once(child, 'error').then(([error]) => { throw error; })]).then(([status]) => { code = status; });
  ended.catch(() => {}); // reported below
  try {
    const late = Date.now() + limit;
    while (code === undefined && !enough(printed)) {
      await Promise.race([ended, pause(interval)]);
      await world.person.look(printed);
      if (answers.length > 0 && answers[0].after.test(printed.slice(read))) {
        read = printed.length;
        child.stdin.write(answers.shift().press);
      }
      if (Date.now() > late) {
        throw new Failure(`not done after ${limit / 1000} s`, printed);
      }
    }
  } catch (error) {
    throw error instanceof Failure ? error : new Failure(words(error.message.replace(/\n[^]*/, '')), printed);
  } finally {
    end(child);
  }
  if (code) {
    throw new Failure(words(printed) || `exit code ${code}`, printed);
  }
  return printed;
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

// words returns the line of the output that says what failed.
export function words(printed) {
  const lines = printed.split(/[\r\n]+/).map((line) => line.trim()).filter(Boolean);
  const line = lines.findLast((text) => /error|fail|unauthor|expired|denied|log ?in|not found/i.test(text)) ?? lines.at(-1) ?? '';
  return line.replaceAll('|', '/').replace(/:\d{4,5}\b/g, ':PORT').slice(0, 120);
}

// end ends the program and what it has started.
function end(child) {
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // all have ended
  }
}
