// The site that serves the metadata document of the clients under test, over TLS with a certificate of a test CA.
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import { join } from 'node:path';
import selfsigned from 'selfsigned';

const path = '/client.json';

// openClientSite publishes one document for every client; each may use any loopback port for its callback.
export async function openClientSite(dir) {
  const certificate = await throwAwayCertificate();
  const authority = join(dir, 'authority.pem');
  await writeFile(authority, certificate.cert, { mode: 0o600 });
  const server = createServer({ key: certificate.private, cert: certificate.cert });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const id = `https://127.0.0.1:${server.address().port}${path}`;
  server.on('request', (request, response) => {
    const found = request.url === path;
    response.writeHead(found ? 200 : 404, { 'Content-Type': 'application/json' }).end(found ? JSON.stringify(metadataOf(id)) : '{}');
  });
  return { id, authority, close: () => server.close() };
}

export function metadataOf(id) {
  return {
    client_id: id,
    client_name: 'Interop client',
    redirect_uris: ['http://127.0.0.1/callback'],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
}

function throwAwayCertificate() {
  return selfsigned.generate([{ name: 'commonName', value: 'Throw-away authority' }], {
    keyType: 'ec',
    algorithm: 'sha256',
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] },
    ],
  });
}
