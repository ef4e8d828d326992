// openid-client, as a plain OAuth 2 client: public with a document, and registered with a secret.
import assert from 'node:assert/strict';
import * as openid from 'openid-client';
import { approve } from '../browser.js';
import { callTools, listTools } from '../demo_site.js';
import { versionOf } from '../report.js';
import { speech } from '../speech.js';

const redirectURI = 'http://127.0.0.1:4323/callback';

export const clients = [{ name: 'openid-client', version: versionOf('openid-client'), transport: 'streamable, by hand', run: (world, step) => new Program(world).run(step) }];

// registering are clients that insist on a secret.
export const registering = ['client_secret_basic', 'client_secret_post'].map((method) => ({
  name: `openid-client, ${method}`, version: versionOf('openid-client'), transport: 'streamable, by hand', registers: true,
  run: (world, step) => new Program(world, method).run(step),
}));

const options = { algorithm: 'oauth2', execute: [openid.allowInsecureRequests] }; // http on loopback

class Program {
  // constructor takes the method of a client that registers with a secret.
  constructor(world, method) {
    this.world = world;
    this.method = method;
    this.ask = speech((headers, body) => this.fetch(headers, body));
  }

  async run(step) {
    await step('connect', () => this.connect());
    await step('list', () => listTools(() => this.ask('tools/list')));
    await step('call', () => callTools((name, input) => this.ask('tools/call', { name, arguments: input })));
    await step('refresh', () => this.refresh());
    await step('reconnect', () => this.reconnect());
    await step('revoke', () => this.revoke());
  }

  fetch(headers, body) {
    return openid.fetchProtectedResource(this.config, this.tokens.access_token, new URL(this.world.mcp), 'POST', body, headers);
  }

  async connect() {
    this.config ??= this.method ? await this.register() :
      await openid.discovery(new URL(this.world.issuer), this.world.clientID, undefined, openid.None(), options);
    const pkceCodeVerifier = openid.randomPKCECodeVerifier(), expectedState = openid.randomState();
    const url = openid.buildAuthorizationUrl(this.config, {
      redirect_uri: redirectURI, scope: 'mcp offline_access', resource: this.world.mcp, state: expectedState,
      code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier), code_challenge_method: 'S256',
    });
    const callback = await approve(url, this.world.token);
    const checks = { pkceCodeVerifier, expectedState };
    this.tokens = await openid.authorizationCodeGrant(this.config, callback, checks, { resource: this.world.mcp });
    await this.ask('server/discover');
    return this.tokens.scope;
  }

  async register() {
    const metadata = { client_name: 'openid-client', redirect_uris: [redirectURI], token_endpoint_auth_method: this.method };
    const authentication = this.method === 'client_secret_basic' ? openid.ClientSecretBasic() : openid.ClientSecretPost();
    const config = await openid.dynamicClientRegistration(new URL(this.world.issuer), metadata, authentication, options);
    const { client_secret: secret, token_endpoint_auth_method: method } = config.clientMetadata();
    assert.match(secret, /^pps_/);
    assert.equal(method, this.method);
    return config;
  }

  async refresh() {
    const before = this.tokens;
    this.tokens = await openid.refreshTokenGrant(this.config, before.refresh_token, { resource: this.world.mcp });
    assert.notEqual(this.tokens.access_token, before.access_token);
    assert.notEqual(this.tokens.refresh_token, before.refresh_token);
    await this.ask('tools/list');
  }

  // reconnect refreshes and signs in again after the server secret was replaced.
  async reconnect() {
    this.world.rotate();
    await this.refresh();
    await this.connect();
    await listTools(() => this.ask('tools/list'));
  }

  async revoke() {
    await openid.tokenRevocation(this.config, this.tokens.refresh_token);
    await assert.rejects(this.ask('tools/list'), (error) =>
      error instanceof openid.WWWAuthenticateChallengeError && error.cause[0].parameters.error === 'invalid_token');
    return 'by the client';
  }
}
