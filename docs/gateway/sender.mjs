// The caller of a request that came through a Pasteport gateway with credential "static".
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

const signed = ['@method', 'content-digest', 'x-pasteport-subject', 'x-pasteport-roles', 'x-pasteport-client', 'x-pasteport-grant', 'x-pasteport-resource'];
const input = new RegExp(`^pasteport=(\\("${signed.join('" "')}"\\);created=(\\d+);keyid="pasteport";alg="hmac-sha256")$`);

// senderOf returns the caller, or throws if the gateway has not signed exactly this request. The headers are those of node:http, and the body is a Buffer.
export function senderOf(method, headers, body, secret, now = Date.now() / 1000) {
  const [, parameters, created] = input.exec(headers['signature-input']) ?? [];
  const digest = `sha-256=:${createHash('sha256').update(body).digest('base64')}:`;
  const lines = signed.map((name) => `"${name}": ${name === '@method' ? method : headers[name] ?? ''}`);
  const base = [...lines, `"@signature-params": ${parameters}`].join('\n');
  const signature = Buffer.from(`pasteport=:${createHmac('sha256', secret).update(base).digest('base64')}:`);
  const given = Buffer.from(headers.signature ?? '');
  if (!parameters || given.length !== signature.length || !timingSafeEqual(given, signature)) {
    throw new Error('not signed by the gateway');
  }
  if (headers['content-digest'] !== digest || Math.abs(now - created) > 60) {
    throw new Error('signed for another body or another time');
  }
  const said = (name) => decodeURIComponent(headers[`x-pasteport-${name}`] ?? '');
  const roles = (headers['x-pasteport-roles'] ?? '').split(',').filter(Boolean).map(decodeURIComponent);
  return { subject: said('subject'), roles, client: said('client'), grant: said('grant'), resource: said('resource') };
}
