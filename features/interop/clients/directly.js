// A client of a server without the gateway.
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { optionsFor } from './typescript_caller.js';

// askDirectly returns the names of the tools, or why the server does not support the revision.
export async function askDirectly(url, transport, revision) {
  const client = new Client({ name: 'interop', version: '1.0.0' }, optionsFor(revision));
  const Transport = transport === 'SSE' ? SSEClientTransport : StreamableHTTPClientTransport;
  try {
    await client.connect(new Transport(new URL(url)));
    const spoken = client.getNegotiatedProtocolVersion();
    return spoken === revision ? { names: (await client.listTools()).tools.map((tool) => tool.name) } : { refusal: `it negotiated ${spoken}` };
  } catch (error) {
    return { refusal: error.message };
  } finally {
    await client.close();
  }
}
