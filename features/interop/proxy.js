// A proxy that can add a bearer token and report requests.
import { once } from 'node:events';
import { createServer, request } from 'node:http';

// openProxy returns the address of the proxy. It reads each request to its end before it forwards it,
// because a response that arrives before the end of its request may be truncated. It calls watch with each request;
// watch returns a function that is called with whether the client disconnected, and with the status. Without rename, the
// target has the name of the proxy.
export async function openProxy(target, { token, watch = () => () => {}, rename = true } = {}) {
  const server = createServer(async (incoming, outgoing) => {
    try {
      forward(incoming, await read(incoming), outgoing);
    } catch {
      outgoing.destroy(); // the client has disconnected
    }
  });
  const forward = (incoming, body, outgoing) => {
    const over = watch(incoming, body);
    const headers = rename ? headersFor(incoming.headers, server.address().port, target, token) : incoming.headers;
    const onward = request(new URL(incoming.url, target), { method: incoming.method, headers, agent: false });
    onward.on('response', (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      outgoing.flushHeaders();
      answer.pipe(outgoing);
      answer.on('error', () => outgoing.destroy());
    });
    onward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => {
      over(!outgoing.writableFinished, outgoing.statusCode);
      onward.destroy();
    });
    onward.end(body);
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => { server.close(); server.closeAllConnections(); };
  return { url: `http://127.0.0.1:${server.address().port}`, close };
}

// openBalancer forwards each request to the next target, without sticky sessions.
export async function openBalancer(targets) {
  let next = 0;
  const server = createServer((incoming, outgoing) => {
    const target = new URL(incoming.url, targets[next++ % targets.length]);
    const onward = request(target, { method: incoming.method, headers: incoming.headers, agent: false });
    onward.on('response', (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      outgoing.flushHeaders();
      answer.pipe(outgoing);
      answer.on('error', () => outgoing.destroy());
    });
    onward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => onward.destroy());
    incoming.pipe(onward);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => { server.close(); server.closeAllConnections(); };
  return { url: `http://127.0.0.1:${server.address().port}`, close };
}

// headersFor replaces the proxy's own name by the target's, and leaves every other Host and Origin for the target to check.
function headersFor(headers, port, target, token) {
  const own = `127.0.0.1:${port}`, changed = { ...headers, ...(token && { authorization: `Bearer ${token}` }) };
  if (headers.host === own) {
    changed.host = new URL(target).host;
  }
  if (headers.origin === `http://${own}`) {
    changed.origin = new URL(target).origin;
  }
  return changed;
}

async function read(stream) {
  const chunks = [];
  for await (const chunk of stream) {
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
