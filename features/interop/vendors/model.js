// A stand-in for a model: it asks for one call of create_article, and then says what the tool answered. It speaks the
// streams of OpenAI (chat and responses), Anthropic and Gemini.
import { once } from 'node:events';
import { createServer } from 'node:http';

export const model = 'stand-in';

// prompt is what the person says. The stand-in takes the title from it.
export const prompt = ({ title }) => `Use the tool create_article to write a draft with the title "${title}".`;

// openModel returns the address of a new stand-in.
export async function openModel() {
  const server = createServer(async (request, response) => {
    const body = await read(request), { pathname } = new URL(request.url, 'http://model'), speak = dialect(pathname);
    if (process.env.VENDORS_OUTPUT) {
      console.error(`model: ${request.method} ${pathname} ${tool(body)?.name ?? ''}`);
    }
    if (!speak || /:generateContent$/.test(pathname)) { // a list of models, or Gemini without a stream
      const answer = speak ? speak(next(body))[0] : { object: 'list', data: [{ id: model, object: 'model' }] };
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer));
      return;
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    for (const event of speak(next(body))) {
      response.write(`${event.type ? `event: ${event.type}\n` : ''}data: ${JSON.stringify(event)}\n\n`);
    }
    response.end(speak === chat ? 'data: [DONE]\n\n' : '');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => { server.close(); server.closeAllConnections(); };
  return { url: `http://127.0.0.1:${server.address().port}`, close };
}

// next decides from the conversation: call the tool, or say the slug that it answered. Some clients have a tool for the
// login.
function next(body) {
  const conversation = JSON.stringify(body);
  const slug = /\bbeans-\d+/.exec(conversation)?.[0], title = /Beans \d+/.exec(conversation)?.[0];
  const found = tool(body), login = tool(body, /authenticate$/);
  if (found && title && !slug) {
    return { ...found, input: JSON.stringify({ title, body: 'Water them.' }) };
  }
  return login && !/call_1|toolu_1/.test(conversation) ? { ...login, input: '{}' } : { text: slug ?? 'Hello.' };
}

// tool finds a tool by its name among the tools, also in a namespace of tools.
function tool(value, name = /create_article$/, namespace = undefined) {
  if (value === null || typeof value !== 'object') {
    return undefined;
  }
  if (name.test(value.name) && (value.description || value.parameters || value.input_schema)) {
    return { name: value.name, namespace };
  }
  const inner = value.type === 'namespace' ? value.name : namespace;
  return Object.values(value).map((member) => tool(member, name, inner)).find(Boolean);
}

function dialect(path) {
  const openAI = [[/chat\/completions$/, chat], [/responses$/, responses]];
  const known = [...openAI, [/messages$/, messages], [/GenerateContent$/i, gemini]];
  return known.find(([pattern]) => pattern.test(path))?.[1];
}

function chat({ name, input, text }) {
  const head = { id: '1', object: 'chat.completion.chunk', created: 1, model };
  const chunk = (delta, reason = null) => ({ ...head, choices: [{ index: 0, delta, finish_reason: reason }] });
  const call = { index: 0, id: 'call_1', type: 'function', function: { name, arguments: input } };
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const answer = { role: 'assistant', ...(name ? { tool_calls: [call] } : { content: text }) };
  return [chunk(answer), { ...chunk({}, name ? 'tool_calls' : 'stop'), usage }];
}

function responses({ name, namespace, input, text }) {
  const call = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name, namespace, arguments: input };
  const content = [{ type: 'output_text', text, annotations: [] }];
  const item = name ? call : { type: 'message', id: 'msg_1', role: 'assistant', content };
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  return [
    { type: 'response.created', response: { id: 'resp_1' } },
    { type: 'response.output_item.added', output_index: 0, item },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response: { id: 'resp_1', status: 'completed', output: [item], usage } },
  ];
}

function messages({ name, input, text }) {
  const block = name ? { type: 'tool_use', id: 'toolu_1', name, input: {} } : { type: 'text', text: '' };
  const delta = name ? { type: 'input_json_delta', partial_json: input } : { type: 'text_delta', text };
  const usage = { input_tokens: 1, output_tokens: 1 }, reason = name ? 'tool_use' : 'end_turn';
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model, content: [], stop_reason: null, usage };
  return [
    { type: 'message_start', message },
    { type: 'content_block_start', index: 0, content_block: block },
    { type: 'content_block_delta', index: 0, delta },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, usage },
    { type: 'message_stop' },
  ];
}

function gemini({ name, input, text }) {
  const part = name ? { functionCall: { name, args: JSON.parse(input) } } : { text };
  const candidate = { index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' };
  return [{ candidates: [candidate], usageMetadata: { totalTokenCount: 2 } }];
}

async function read(request) {
  const chunks = [];
  for await (const chunk of request) {
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks));
  } catch {
    return {}; // a GET
  }
}
