// Unmodified public servers behind the gateway, with the tools that show their features. A server whose section is on the page docs/gateway.md
// has its command and settings there; the others have them here, with port 9000 as on the page. A server over stdio has no command.
import { join } from 'node:path';
import { firstKey, parts } from './page.js';
import { versionOf } from './report.js';
import { sdkVersion } from './servers.js';

const resultSize = 5 * 1024 * 1024; // bytes of the large result, at least

// everything are the tools of @modelcontextprotocol/server-everything. It fetches the file of the large result from our site.
const everything = {
  call: { name: 'echo', arguments: { message: 'hello' }, result: /^Echo: hello$/ },
  progress: { name: 'trigger-long-running-operation', arguments: { duration: 1, steps: 10 } },
  requests: [
    { name: 'trigger-sampling-request', arguments: { prompt: 'hello' }, result: /a sampled answer/ },
    { name: 'trigger-elicitation-request', arguments: {}, result: /an elicited name/ },
  ],
  large: (site) => ({ name: 'gzip-file-as-resource', arguments: { name: 'noise.gz', data: `${site}/noise`, outputType: 'resource' }, size: resultSize }),
};

// goEverything are the tools of the Go SDK's example. None reports progress; the call that is cancelled waits for an answer of the person.
// With bound tools, those with spaces in their names are unknown.
const sample = { name: 'sample', arguments: {}, result: /a sampled answer/ };
const form = { name: 'elicit (form)', arguments: {} };
const greet = { name: 'greet', arguments: { name: 'Ada' }, result: /^Hi Ada$/ };
const goEverything = process.env.PASTEPORT_BIND_TOOLS ? { call: greet, requests: [sample] } : {
  call: greet,
  waits: form,
  requests: [sample, { ...form, result: /an elicited name/ }],
  large: () => ({ name: 'greet (structured)', arguments: { name: 'x'.repeat(resultSize / 2) }, size: resultSize }), // it repeats its text
};

// notion are the tools of @notionhq/notion-mcp-server, with our site in place of Notion's, which repeats the credential that it gets. It
// reports no progress, and sends no request to the client.
const notion = {
  environment: (site) => ({ BASE_URL: site }),
  call: { name: 'API-get-self', arguments: {}, result: /"authorization":"Bearer ntn_/ },
  large: () => ({ name: 'API-get-users', arguments: {}, size: resultSize }),
};

// ofMyServer are the tools of docs/gateway/my_server.py.
const ofMyServer = { call: { name: 'key', arguments: {}, result: /^The key ends with key$/ } };

// filesystem are the tools of @modelcontextprotocol/server-filesystem.
const filesystem = (files) => ({
  call: { name: 'read_text_file', arguments: { path: join(files, 'hello.txt') }, result: /^hello$/ },
  large: () => ({ name: 'read_text_file', arguments: { path: join(files, 'large.txt') }, size: resultSize }),
});

// memory are the tools of @modelcontextprotocol/server-memory.
const memory = {
  call: { name: 'create_entities', arguments: { entities: [{ name: 'Ada', entityType: 'person', observations: ['writes'] }] }, result: /"Ada"/ },
  large: () => ({ name: 'create_entities', arguments: { entities: [{ name: 'Large', entityType: 'text', observations: ['x'.repeat(resultSize)] }] }, size: resultSize }),
};

const overStdio = (command, credential) => `upstream: 'stdio: ${command}'
verifier: file
token-file: tokens
credential: ${credential}
`;

const withoutKeys = `upstream: http://127.0.0.1:9000/mcp
verifier: file
token-file: tokens
credential: none
`;

const basic = `upstream: http://127.0.0.1:9000/mcp
fields:
- {name: user}
- {name: token}
present: 'Authorization: Basic {base64(user:token)}'
`;

const [everythingPackage, notionPackage, bridge] = ['@modelcontextprotocol/server-everything', '@notionhq/notion-mcp-server', 'mcp-proxy']
  .map((name) => `${name} ${versionOf(name)}`);

// onPage are the servers of the page by the heading of their section.
const onPage = {
  'My server takes a bearer token': { server: notionPackage, headers: ['authorization'], ...notion },
  'My server reads X-Api-Key': { server: `${bridge}, server-everything`, headers: ['x-api-key'], ...everything, requests: undefined }, // the bridge has no sampling and elicitation
  'My server needs two values': { server: notionPackage, headers: ['authorization', 'notion-token'], ...notion,
    call: { ...notion.call, result: /"authorization":"Bearer ntn_of_this_person"/ } },
  'My server has no keys': { server: everythingPackage, ...everything },
  'My server is an npm package': { server: everythingPackage, ...everything, call: { name: 'get-env', arguments: {}, result: /"API_KEY": "in-a-file-my-first-key"/ } },
  'My server is a Python program that uses stdio': { server: 'docs/gateway/my_server.py', ...ofMyServer },
};

// stdio returns servers over stdio, which the gateway starts. The folder has the programs of the Go SDK.
const stdio = (folder, files) => [
  { server: `${everythingPackage}, stdio`, settings: overStdio('API_KEY={token} mcp-server-everything', 'host-token'), ...everything },
  { server: `@modelcontextprotocol/server-filesystem ${versionOf('@modelcontextprotocol/server-filesystem')}`, settings: overStdio(`mcp-server-filesystem ${files}`, 'none'), ...filesystem(files) },
  { server: `@modelcontextprotocol/server-memory ${versionOf('@modelcontextprotocol/server-memory')}`, settings: overStdio(`MEMORY_FILE_PATH=${join(files, 'memory.jsonl')} mcp-server-memory`, 'none'), ...memory },
  { server: `Go SDK ${sdkVersion()}, everything, stdio`, settings: overStdio(join(folder, 'everything'), 'none'), ...goEverything },
];

// publicServers lists the servers; the folder has the programs of the Go SDK, and files a small and a large file.
export function publicServers(folder, files) {
  const others = [
    { server: `Go SDK ${sdkVersion()}, everything`, command: `${join(folder, 'everything')} -http 127.0.0.1:9000`, settings: withoutKeys, ...goEverything },
    { server: 'Caddy, server-everything', command: 'KEY=my-first-key node servers/basic.js 9000', settings: basic, answers: ['ada', 'my-first-key'],
      headers: ['authorization'], ...everything },
  ];
  return [...parts().map((part) => ({ server: 'unknown', ...part, ...onPage[part.name] })), ...others, ...stdio(folder, files)]
    .map((server) => ({ name: 'other', answers: [firstKey(server.settings)], headers: [], ...server }));
}
