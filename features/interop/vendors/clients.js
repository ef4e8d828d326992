// The clients, with the versions that the run installs.
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { aiSDK, langChain } from './libraries.js';
import { model, prompt } from './model.js';
import { run } from './program.js';

const article = (world) => ({ title: world.title, body: 'Water them.' });

// file writes a file of settings into the home of the client.
async function file(world, name, content) {
  const path = join(world.home, name);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
}

// command returns a step that runs a program of the installed packages. An argument may depend on the world.
const command = (program, ...args) => withOptions({}, program, ...args);

const withOptions = (options, program, ...args) => (world) => {
  const own = args.map((arg) => (typeof arg === 'function' ? arg(world) : arg));
  const enough = (printed) => options.enough?.(world, printed);
  return run(world, [join(world.folder, 'node_modules', program), ...own], { ...options, enough, env: options.env?.(world) });
};

const name = `linux-${process.arch}`; // in the names of packages that have programs

const mcporter = (...args) => command('.bin/mcporter', '--config', (world) => join(world.home, 'mcporter.json'), ...args);

const library = { restart: 'not run: the program decides what it keeps', logout: 'not run: no such function' };

export const clients = [
  { name: '@ai-sdk/mcp', package: '@ai-sdk/mcp', version: '2.0.99', without: library, ...aiSDK },
  {
    name: '@langchain/mcp-adapters', package: '@langchain/mcp-adapters', version: '1.1.4', more: ['@langchain/core'],
    without: library, ...langChain,
  },
  {
    name: 'mcporter', package: 'mcporter', version: '0.12.3', node: '24.21.0',
    prepare: (world) => file(world, 'mcporter.json', { mcpServers: { site: { url: world.mcp, auth: 'oauth' } }, imports: [] }),
    login: mcporter('auth', 'site'),
    list: mcporter('list', 'site'),
    call: mcporter('call', 'site.create_article', '--args', (world) => JSON.stringify(article(world))),
    logout: mcporter('config', 'logout', 'site'),
  },
  {
    name: 'Codex', package: '@openai/codex', version: '0.171.0',
    prepare: (world) => file(world, '.codex/config.toml', codexSettings(world)),
    login: command('.bin/codex', 'mcp', 'login', 'site'),
    call: command('.bin/codex', 'exec', '--skip-git-repo-check', prompt),
    logout: command('.bin/codex', 'mcp', 'logout', 'site'),
  },
  claudeCode(`@anthropic-ai/claude-code-${name}/claude`),
  openCode({ name: 'opencode', package: 'opencode-ai', version: '1.18.33' }, `opencode-${name}/bin/opencode`, '.config/opencode/opencode.json'),
  openCode({ name: 'Kilo', package: '@kilocode/cli', version: '7.7.7' }, `@kilocode/cli-${name}/bin/kilo`, '.config/kilo/kilo.json'),
  gemini({ name: 'Gemini CLI', package: '@google/gemini-cli', version: '0.61.0' }, '.bin/gemini', '.gemini/settings.json', 'gemini-api-key'),
  gemini({ name: 'Qwen Code', package: '@qwen-code/qwen-code', version: '0.24.4' }, '.bin/qwen', '.qwen/settings.json', 'openai'),
  {
    name: 'Kimi Code', package: '@moonshot-ai/kimi-code', version: '2.1.0',
    prepare: async (world) => {
      await file(world, '.kimi-code/mcp.json', { mcpServers: { site: { url: world.mcp } } });
      await file(world, '.kimi-code/config.toml', kimiSettings(world));
    },
    login: command('.bin/kimi', '-p', 'Log in to the MCP server site.'),
    call: command('.bin/kimi', '-p', prompt),
  },
  copilot({ name: 'GitHub Copilot CLI', package: '@github/copilot', version: '1.0.102' }, '.bin/copilot'),
];

function codexSettings({ mcp, model: { url } }) {
  return `model = "${model}"
model_provider = "${model}"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
mcp_oauth_credentials_store = "file"
analytics.enabled = false
model_providers.${model} = { name = "${model}", base_url = "${url}/v1", wire_api = "responses" }
mcp_servers.site.url = "${mcp}"
`;
}

function claudeCode(program) {
  const env = ({ model: { url } }) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: 'none', ENABLE_TOOL_SEARCH: 'false', MCP_CONNECTION_NONBLOCKING: 'false' });
  return {
    name: 'Claude Code', package: '@anthropic-ai/claude-code', version: '2.1.332',
    prepare: (world) => file(world, '.claude.json', { hasCompletedOnboarding: true, mcpServers: { site: { type: 'http', url: world.mcp } } }),
    login: withOptions({ env, terminal: true }, program, 'mcp', 'login', 'site'),
    call: withOptions({ env }, program, '-p', prompt, '--allowedTools', 'mcp__site__create_article'),
    logout: withOptions({ env }, program, 'mcp', 'logout', 'site'),
  };
}

// openCode is opencode or a fork of it.
function openCode(client, program, settings) {
  return {
    ...client,
    prepare: (world) => file(world, settings, {
      autoupdate: false, share: 'disabled', model: `site/${model}`, mcp: { site: { type: 'remote', url: world.mcp } },
      provider: { site: { npm: '@ai-sdk/openai-compatible', options: { baseURL: `${world.model.url}/v1`, apiKey: 'none' }, models: { [model]: {} } } },
    }),
    login: command(program, 'mcp', 'auth', 'site'),
    list: command(program, 'mcp', 'list'),
    call: command(program, 'run', prompt),
    logout: command(program, 'mcp', 'logout', 'site'),
  };
}

// gemini is Gemini CLI or a fork of it. Its login is a command of its interactive mode.
function gemini(client, program, settings, selectedType) {
  const env = ({ model: { url } }) => ({
    GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: url, OPENAI_API_KEY: 'none', OPENAI_BASE_URL: `${url}/v1`, OPENAI_MODEL: model, GEMINI_CLI_TRUST_WORKSPACE: 'true',
  });
  const enough = ({ witness }) => witness.loggedIn(0);
  return {
    ...client,
    prepare: (world) => file(world, settings, {
      mcpServers: { site: { httpUrl: world.mcp } }, security: { auth: { selectedType } }, privacy: { usageStatisticsEnabled: false },
      general: { enableAutoUpdate: false, disableAutoUpdate: true }, telemetry: { enabled: false },
    }),
    login: withOptions({ env, enough, terminal: true }, program, '-i', '/mcp auth site'),
    list: withOptions({ env }, program, 'mcp', 'list'),
    call: withOptions({ env }, program, '--yolo', '-p', prompt),
  };
}

function copilot(client, program) {
  const env = ({ model: { url } }) => ({ COPILOT_OFFLINE: 'true', COPILOT_PROVIDER_BASE_URL: `${url}/v1`, COPILOT_MODEL: model });
  const enough = ({ witness }) => witness.loggedIn(0);
  return {
    ...client,
    prepare: (world) => file(world, '.copilot/mcp-config.json', { mcpServers: { site: { type: 'http', url: world.mcp, tools: ['*'] } } }),
    login: withOptions({ env, enough, terminal: true }, program, '-i', '/mcp auth site'),
    call: withOptions({ env }, program, '--allow-all-tools', '-p', prompt),
  };
}

function kimiSettings({ model: { url } }) {
  return `default_model = "${model}"
telemetry = false

[providers.site]
type = "openai"
base_url = "${url}/v1"
api_key = "none"

[models.${model}]
provider = "site"
model = "${model}"
max_context_size = 100000
`;
}
