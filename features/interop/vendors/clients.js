// The clients, with the versions that the run installs.
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { aiSDK, langChain } from './libraries.js';
import { model, prompt } from './model.js';
import { run } from './program.js';

const native = `linux-${process.arch}`; // in the names of packages that have programs
const modelOf = (world) => `${world.model.url}/v1`;

// Each client has a step for login, list, call and logout, or none. Without one for list, another step lists the tools.
export const clients = [
  { name: '@ai-sdk/mcp', package: '@ai-sdk/mcp', version: '2.0.99', ...aiSDK },
  {
    name: '@langchain/mcp-adapters',
    package: '@langchain/mcp-adapters',
    version: '1.1.4',
    more: ['@langchain/core@1.4.0'],
    ...langChain,
  },
  mcporter({ name: 'mcporter', package: 'mcporter', version: '0.12.3', node: '24.21.0' }),
  codex({ name: 'Codex', package: '@openai/codex', version: '0.171.0' }),
  claudeCode({ name: 'Claude Code', package: '@anthropic-ai/claude-code', version: '2.1.332' }),
  openCode({ name: 'opencode', package: 'opencode-ai', version: '1.18.33' },
    `opencode-${native}/bin/opencode`, '.config/opencode/opencode.json'),
  openCode({ name: 'Kilo', package: '@kilocode/cli', version: '7.7.7', node: '24.21.0' },
    `@kilocode/cli-${native}/bin/kilo`, '.config/kilo/kilo.json'),
  geminiCLI({ name: 'Gemini CLI', package: '@google/gemini-cli', version: '0.61.0' }),
  qwenCode({ name: 'Qwen Code', package: '@qwen-code/qwen-code', version: '0.24.4' }),
  kimiCode({ name: 'Kimi Code', package: '@moonshot-ai/kimi-code', version: '2.1.0' }),
  cline({ name: 'Cline CLI', package: 'cline', version: '3.0.65' }),
  copilot({ name: 'GitHub Copilot CLI', package: '@github/copilot', version: '1.0.102' }),
  amp({ name: 'Amp', package: '@ampcode/cli', version: '0.0.1790142911-g7618fb' }),
];

function mcporter(client) {
  const program = command('.bin/mcporter', '--config', (world) => join(world.home, 'mcporter.json'));
  return {
    ...client,
    prepare: file('mcporter.json', ({ mcp }) => ({ mcpServers: { site: { url: mcp, auth: 'oauth' } }, imports: [] })),
    login: program('auth', 'site'),
    list: program('list', 'site'),
    call: program('call', 'site.create_article', '--args', ({ title }) => JSON.stringify({ title, body: 'Dry.' })),
    logout: program('config', 'logout', 'site'),
  };
}

function codex(client) {
  const program = command('.bin/codex');
  return {
    ...client,
    prepare: file('.codex/config.toml', (world) => `model = "${model}"
model_provider = "${model}"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
mcp_oauth_credentials_store = "file"
analytics.enabled = false
model_providers.${model} = { name = "${model}", base_url = "${modelOf(world)}", wire_api = "responses" }
mcp_servers.site.url = "${world.mcp}"
`),
    login: program('mcp', 'login', 'site'),
    call: program('exec', '--skip-git-repo-check', prompt),
    logout: program('mcp', 'logout', 'site'),
  };
}

function claudeCode(client) {
  const program = command(`@anthropic-ai/claude-code-${native}/claude`);
  const waiting = { ENABLE_TOOL_SEARCH: 'false', MCP_CONNECTION_NONBLOCKING: 'false' };
  return {
    ...client,
    env: (world) => ({ ANTHROPIC_BASE_URL: world.model.url, ANTHROPIC_API_KEY: 'none', ...waiting }),
    prepare: file('.claude.json', ({ mcp }) => ({
      hasCompletedOnboarding: true,
      mcpServers: { site: { type: 'http', url: mcp } },
    })),
    login: inTerminal(program('mcp', 'login', 'site')),
    call: program('-p', prompt, '--allowedTools', 'mcp__site__create_article'),
    logout: program('mcp', 'logout', 'site'),
  };
}

// openCode is opencode or a fork of it.
function openCode(client, path, settings) {
  const program = command(path);
  return {
    ...client,
    prepare: file(settings, (world) => ({
      autoupdate: false,
      share: 'disabled',
      model: `site/${model}`,
      mcp: { site: { type: 'remote', url: world.mcp } },
      provider: {
        site: {
          npm: '@ai-sdk/openai-compatible',
          options: { baseURL: modelOf(world), apiKey: 'none' },
          models: { [model]: {} },
        },
      },
    })),
    login: program('mcp', 'auth', 'site'),
    list: program('mcp', 'list'),
    call: program('run', prompt),
    logout: program('mcp', 'logout', 'site'),
  };
}

// geminiCLI types the command, because it takes an argument for a prompt before the commands are loaded. With a model
// named, it does not ask one which to take.
function geminiCLI(client) {
  const program = command('.bin/gemini');
  const keys = [[/Type your message/, '/mcp auth site'], [/mcp auth site/, '\r'], [/Do you want to continue/, '\r']];
  return {
    ...client,
    env: (world) => ({
      GEMINI_API_KEY: 'none',
      GOOGLE_GEMINI_BASE_URL: world.model.url,
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
    }),
    prepare: file('.gemini/settings.json', ({ mcp }) => ({
      mcpServers: { site: { httpUrl: mcp } },
      security: { auth: { selectedType: 'gemini-api-key' } },
      privacy: { usageStatisticsEnabled: false },
      general: { enableAutoUpdate: false },
    })),
    login: inTerminal(program(), { keys, enough: connected }),
    call: program('--yolo', '-m', 'gemini-2.5-flash', '-p', prompt),
  };
}

// qwenCode logs in when it starts.
function qwenCode(client) {
  const program = command('.bin/qwen');
  return {
    ...client,
    env: (world) => ({ OPENAI_API_KEY: 'none', OPENAI_BASE_URL: modelOf(world), OPENAI_MODEL: model }),
    prepare: file('.qwen/settings.json', ({ mcp }) => ({
      mcpServers: { site: { httpUrl: mcp } },
      security: { auth: { selectedType: 'openai' } },
      privacy: { usageStatisticsEnabled: false },
      general: { enableAutoUpdate: false, disableAutoUpdate: true },
      tools: { toolSearch: { enabled: false } },
    })),
    login: inTerminal(program(), { enough: connected }),
    call: program('--yolo', '-p', prompt),
  };
}

// kimiCode has a tool for the login, which the stand-in asks for.
function kimiCode(client) {
  const program = command('.bin/kimi');
  const settings = file('.kimi-code/config.toml', (world) => `default_model = "${model}"
telemetry = false
providers.site = { type = "openai", base_url = "${modelOf(world)}", api_key = "none" }
models.${model} = { provider = "site", model = "${model}", max_context_size = 100000 }
`);
  const servers = file('.kimi-code/mcp.json', ({ mcp }) => ({ mcpServers: { site: { url: mcp } } }));
  return {
    ...client,
    prepare: async (world) => { await settings(world); await servers(world); },
    login: program('-p', 'Log in to the MCP server site.'),
    call: program('-p', prompt),
  };
}

// cline logs in with the wizard that adds a server; the wizard gets each default.
function cline(client) {
  const program = command(`@cline/cli-${native}/bin/cline`);
  const keys = [/Server name/, /Server type/, /Server URL/, /Authentication/, /client ID/].map((word) => [word, '\r']);
  const enough = (_, printed) => /OAuth authorization completed/.test(printed);
  return {
    ...client,
    prepare: program('auth', '-p', 'openai-compatible', '-k', 'none', '-m', model, '-b', modelOf),
    login: inTerminal(program('mcp', 'add', 'site', '--transport', 'http', ({ mcp }) => mcp), { keys, enough }),
    call: program(prompt),
  };
}

// copilot logs in when it starts.
function copilot(client) {
  const program = command('.bin/copilot');
  return {
    ...client,
    env: (world) => ({ COPILOT_OFFLINE: 'true', COPILOT_PROVIDER_BASE_URL: modelOf(world), COPILOT_MODEL: model }),
    prepare: file('.copilot/mcp-config.json', ({ mcp }) => ({
      mcpServers: { site: { type: 'http', url: mcp, tools: ['*'] } },
    })),
    login: inTerminal(program(), { enough: connected }),
    call: program('--allow-all-tools', '-p', prompt),
  };
}

// amp calls tools only through the vendor's service.
function amp(client) {
  const program = command(`@ampcode/cli-${native}/amp`);
  return {
    ...client,
    env: (world) => ({ AMP_API_KEY: 'none', AMP_URL: world.model.url }),
    prepare: file('.config/amp/settings.json', ({ mcp }) => ({
      'amp.mcpServers': { site: { url: mcp } }, 'amp.updates.mode': 'disabled',
    })),
    login: inTerminal(program('mcp', 'doctor', 'site')),
    list: program('mcp', 'doctor', 'site'),
    logout: program('mcp', 'oauth', 'logout', 'site'),
    without: { call: "not run: needs the vendor's service" },
  };
}

// file returns a step that writes settings into the home of the client.
function file(name, contentOf) {
  return async (world) => {
    const path = join(world.home, name), content = contentOf(world);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
  };
}

// command returns what makes steps of an installed program and its arguments. An argument may depend on the world.
function command(program, ...first) {
  return (...rest) => (world, options) => {
    const args = [...first, ...rest].map((arg) => (typeof arg === 'function' ? arg(world) : arg));
    return run(world, [join(world.folder, 'node_modules', program), ...args], options);
  };
}

// inTerminal runs the step in a terminal, presses keys, and ends the program when enough holds.
function inTerminal(step, { keys = [], enough = () => false } = {}) {
  return (world) => step(world, { terminal: true, keys, enough: (printed) => enough(world, printed) });
}

// connected holds once the client has logged in and listed the tools, for clients that go on running.
function connected({ witness }) {
  return witness.loggedIn(0) && witness.asked(0, 'tools/list');
}
