// The programs that use vendors' libraries. Each keeps its login in this process; a library has no command.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Login } from '../login.js';

const documented = 'https://program.example/client.json';
const load = ({ folder }, name) => import(pathToFileURL(createRequire(join(folder, 'package.json')).resolve(name)));

export const aiSDK = steps({
  open: async (world) => {
    const { createMCPClient } = await load(world, '@ai-sdk/mcp');
    const client = await createMCPClient({ transport: { type: 'http', url: world.mcp, authProvider: world.login } });
    const invoke = (tool, input) => tool.execute(input, { toolCallId: '1', messages: [] });
    return { tools: () => client.tools(), invoke, close: () => client.close() };
  },
  finish: async (world, answer) => {
    const { auth } = await load(world, '@ai-sdk/mcp');
    const [authorizationCode, callbackState, callbackIssuer] = ['code', 'state', 'iss'].map((name) => answer.get(name));
    await auth(world.login, { serverUrl: world.mcp, authorizationCode, callbackState, callbackIssuer });
  },
});

export const langChain = steps({
  clientID: documented,
  open: async (world) => {
    const { MultiServerMCPClient } = await load(world, '@langchain/mcp-adapters');
    const client = new MultiServerMCPClient({ mcpServers: { site: { url: world.mcp, authProvider: world.login } } });
    const tools = async () => Object.fromEntries((await client.getTools()).map((tool) => [tool.name, tool]));
    return { tools, invoke: (tool, input) => tool.invoke(input), close: () => client.close() };
  },
  finish: async (world, answer) => {
    const { auth } = await load(world, '@modelcontextprotocol/sdk/client/auth.js');
    await auth(world.login, { serverUrl: world.mcp, authorizationCode: answer.get('code') });
  },
});

// steps returns the steps of a program. The first connection fails, and asks for the approval.
function steps({ clientID, open, finish }) {
  const use = async (world, act) => {
    const client = await open(world);
    try {
      return JSON.stringify(await act(client, await client.tools())) ?? '';
    } finally {
      await client.close();
    }
  };
  return {
    library: true,
    without: { restart: 'not run: the program decides what it keeps', logout: 'not run: no such function' },
    login: async (world) => {
      world.login = new Login(clientID);
      await assert.rejects(use(world, () => {}));
      await finish(world, world.login.answer(await world.person.visit(world.login.asked.at(-1))));
    },
    list: (world) => use(world, (_, tools) => Object.keys(tools)),
    call: (world) => use(world, (client, tools) => {
      return client.invoke(tools.create_article, { title: world.title, body: 'Water them.' });
    }),
  };
}
