// A proxy that adds nothing, or the bearer token for a suite that cannot, and lets somebody watch.
import { once } from 'node:events';
import { createServer, request } from 'node:http';

// openProxy returns the address under which the target is to be reached. What comes in is read to its end before it goes on,
// because an answer that overtakes its question can be cut off. The watch is told of each request, and gives a function that is
// told whether the client hung up.
export async function openProxy(target, { token, watch = () => () => {} } = {}) {
  const server = createServer(async (incoming, outgoing) => {
    try {
      forward(incoming, await read(incoming), outgoing);
    } catch {
      outgoing.destroy(); // the client went away
    }
  });
  const forward = (incoming, body, outgoing) => {
    const over = watch(incoming, body);
    const headers = headersFor(incoming.headers, server.address().port, target, token);
    const onward = request(new URL(incoming.url, target), { method: incoming.method, headers, agent: false });
    onward.on('response', (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      outgoing.flushHeaders();
      answer.pipe(outgoing);
      answer.on('error', () => outgoing.destroy());
    });
    onward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => {
      over(!outgoing.writableFinished);
      onward.destroy();
    });
    onward.end(body);
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => { server.close(); server.closeAllConnections(); };
  return { url: `http://127.0.0.1:${server.address().port}`, close };
}

// openBalancer sends each request on to the next target, without stickiness.
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

// headersFor calls the proxy by the target's name, and leaves every other Host and Origin as they are: the target judges them.
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
