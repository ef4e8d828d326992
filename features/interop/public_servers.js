// Unmodified public servers behind the gateway, with the tools that show their features. A server whose section is on the page docs/gateway.md
// has its command and settings there; the others have them here, with port 9000 as on the page. A server over stdio has no command.
import { join } from 'node:path';
import { parts } from './page.js';
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
const goEverything = {
  call: { name: 'greet', arguments: { name: 'Ada' }, result: /^Hi Ada$/ },
  waits: { name: 'elicit (form)', arguments: {} },
  requests: [
    { name: 'sample', arguments: {}, result: /a sampled answer/ },
    { name: 'elicit (form)', arguments: {}, result: /an elicited name/ },
  ],
  large: () => ({ name: 'greet (structured)', arguments: { name: 'x'.repeat(resultSize / 2) }, size: resultSize }), // it repeats its text
};

// notion are the tools of @notionhq/notion-mcp-server, with our site in place of Notion's, which repeats the credential that it gets. It
// reports no progress, and sends no request to the client.
const notion = {
  environment: (site) => ({ BASE_URL: site }),
  call: { name: 'API-get-self', arguments: {}, result: /"authorization":"Bearer ntn_/ },
  large: () => ({ name: 'API-get-users', arguments: {}, size: resultSize }),
};

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
};

// publicServers lists the servers; the folder has the programs of the Go SDK.
export function publicServers(folder) {
  const others = [
    { server: everythingPackage, command: 'PORT=9000 mcp-server-everything streamableHttp', settings: withoutKeys, ...everything },
    { server: `Go SDK ${sdkVersion()}, everything`, command: `${join(folder, 'everything')} -http 127.0.0.1:9000`, settings: withoutKeys, ...goEverything },
    { server: 'Caddy, server-everything', command: 'KEY=my-first-key node servers/basic.js 9000', settings: basic, answers: ['ada', 'my-first-key'],
      headers: ['authorization'], ...everything },
  ];
  return [...parts().map((part) => ({ server: 'unknown', ...part, ...onPage[part.name] })), ...others]
    .map((server) => ({ name: 'other', answers: ['my-first-key'], headers: [], ...server }));
}
