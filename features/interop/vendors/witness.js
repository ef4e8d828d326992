// What a client was seen to do: the requests that reached the server, with their status and without any secret.
import { openProxy } from '../proxy.js';

// openWitness starts a proxy in front of a server that records every request.
export async function openWitness(target) {
  const witness = new Witness();
  const watch = (incoming, body) => witness.see(incoming, body);
  const { url, close } = await openProxy(target, { rename: false, watch });
  return Object.assign(witness, { url, close });
}

class Witness {
  requests = [];

  see({ method, url, headers }, body) {
    const { pathname } = new URL(url, 'http://server');
    const form = new URLSearchParams(/form-urlencoded/.test(headers['content-type']) ? String(body) : '');
    const json = parse(body);
    const request = {
      method,
      path: pathname,
      grant: form.get('grant_type'),
      asked: [json].flat().map((message) => message?.method),
      registration: pathname === '/oauth/register' ? json : undefined,
    };
    this.requests.push(request);
    return (_, status) => { request.status = status; };
  }

  // saw returns whether the server answered such a request well, among those since the mark.
  saw(mark, matches) { return this.requests.slice(mark).some((request) => request.status < 300 && matches(request)); }

  get mark() { return this.requests.length; }

  loggedIn(mark) { return this.saw(mark, ({ grant }) => grant === 'authorization_code'); }

  refreshed(mark) { return this.saw(mark, ({ grant }) => grant === 'refresh_token'); }

  asked(mark, method) { return this.saw(mark, ({ path, asked }) => path.startsWith('/mcp') && asked.includes(method)); }

  revoked(mark) { return this.saw(mark, ({ path }) => path === '/oauth/revoke'); }

  registration() {
    return this.requests.findLast((request) => request.registration && request.status < 300)?.registration;
  }

  // trail returns the requests since the mark in short, for a failure.
  trail(mark) {
    const words = ({ method, path, grant, asked, status }) => [method, path, grant ?? asked.join(), status];
    return this.requests.slice(mark).map((request) => words(request).filter(Boolean).join(' ')).join('\n');
  }
}

function parse(body) {
  try {
    return JSON.parse(body);
  } catch {
    return undefined; // a GET, or a form
  }
}
