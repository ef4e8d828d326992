// The steps of every connected client at the demo site.
import assert from 'node:assert/strict';

// listTools checks the response to tools/list.
export async function listTools(list) {
  const names = (await list()).tools.map((tool) => tool.name);
  for (const name of ['list_articles', 'create_article', 'get_article']) {
    assert(names.includes(name), `the tools are ${names}`);
  }
  return `${names.length} tools`;
}

// callTools writes an article and reads it.
export async function callTools(call) {
  const body = `Beans ${Math.random()}`;
  const { slug } = content(await call('create_article', { title: 'My garden', body }));
  assert.equal(content(await call('get_article', { slug })).body, body);
}

function content(result) {
  assert(!result.isError, JSON.stringify(result));
  return result.structuredContent;
}
