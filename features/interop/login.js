// The OAuth provider that both TypeScript SDKs require of a program: token storage and a browser.
import { randomUUID } from 'node:crypto';
import { metadataOf } from './client_site.js';

export class Login {
  redirectUrl = 'http://127.0.0.1:4321/callback';
  asked = []; // authorization URLs that the client has opened
  saved = []; // every token response
  #kept = {};

  // constructor takes the client_id of a published document; without one, the client registers itself.
  constructor(clientID) {
    this.clientMetadataUrl = clientID;
    this.clientMetadata = { ...metadataOf(clientID), redirect_uris: [this.redirectUrl] };
  }

  state() { return (this.#kept.state = randomUUID()); }
  clientInformation() { return this.#kept.client; }
  saveClientInformation(client) { this.#kept.client = client; }
  tokens() { return this.#kept.tokens; }
  saveTokens(tokens) { this.saved.push(this.#kept.tokens = tokens); }
  forgetRefreshToken() { delete this.#kept.tokens.refresh_token; }
  codeVerifier() { return this.#kept.verifier; }
  saveCodeVerifier(verifier) { this.#kept.verifier = verifier; }
  discoveryState() { return this.#kept.discovery; }
  saveDiscoveryState(discovery) { this.#kept.discovery = discovery; }
  redirectToAuthorization(url) { this.asked.push(url); }

  invalidateCredentials(scope) {
    for (const name of scope === 'all' ? Object.keys(this.#kept) : [scope]) {
      delete this.#kept[name];
    }
  }

  // answer checks the callback parameters, as the SDK's documentation requires.
  answer(callback) {
    if (callback.searchParams.get('state') !== this.#kept.state) {
      throw new Error('the state came back changed');
    }
    return callback.searchParams;
  }
}
