// oauth4webapi, an OAuth library without MCP support.
import assert from 'node:assert/strict';
import * as oauth from 'oauth4webapi';
import { approve } from '../browser.js';
import { callTools, listTools } from '../demo_site.js';
import { versionOf } from '../report.js';
import { speech } from '../speech.js';

const redirectURI = 'http://127.0.0.1:4322/callback';
const insecure = { [oauth.allowInsecureRequests]: true }; // http on loopback

export const clients = [{ name: 'oauth4webapi', version: versionOf('oauth4webapi'), transport: 'streamable, by hand', run: (world, step) => new Program(world).run(step) }];

// signIn returns an access token.
export async function signIn(world) {
  const program = new Program(world);
  await program.authorize();
  return program.tokens.access_token;
}

class Program {
  constructor(world) {
    this.world = world;
    this.client = { client_id: world.clientID };
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
    return oauth.protectedResourceRequest(this.tokens.access_token, 'POST', new URL(this.world.mcp), headers, body, insecure);
  }

  async connect() {
    await this.authorize();
    await this.ask('server/discover');
    return this.tokens.scope;
  }

  async authorize() {
    await this.discover();
    const verifier = oauth.generateRandomCodeVerifier(), state = oauth.generateRandomState();
    const callback = await approve(await this.authorizationURL(verifier, state), this.world.token);
    const answer = oauth.validateAuthResponse(this.server, this.client, callback, state);
    const response = await oauth.authorizationCodeGrantRequest(
      this.server, this.client, oauth.None(), answer, redirectURI, verifier,
      { ...insecure, additionalParameters: { resource: this.world.mcp } });
    this.tokens = await oauth.processAuthorizationCodeResponse(this.server, this.client, response);
  }

  // discover finds the authorization server from the resource URL.
  async discover() {
    const mcp = new URL(this.world.mcp);
    const resource = await oauth.processResourceDiscoveryResponse(mcp, await oauth.resourceDiscoveryRequest(mcp, insecure));
    const issuer = new URL(resource.authorization_servers[0]);
    const response = await oauth.discoveryRequest(issuer, { ...insecure, algorithm: 'oauth2' });
    this.server = await oauth.processDiscoveryResponse(issuer, response);
    assert.equal(this.server.client_id_metadata_document_supported, true);
  }

  async authorizationURL(verifier, state) {
    const url = new URL(this.server.authorization_endpoint);
    url.search = new URLSearchParams({
      response_type: 'code', client_id: this.client.client_id, redirect_uri: redirectURI, state, scope: 'mcp offline_access',
      resource: this.world.mcp, code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256',
    });
    return url;
  }

  async refresh() {
    const before = this.tokens;
    const response = await oauth.refreshTokenGrantRequest(this.server, this.client, oauth.None(), before.refresh_token, insecure);
    this.tokens = await oauth.processRefreshTokenResponse(this.server, this.client, response);
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
    const response = await oauth.revocationRequest(this.server, this.client, oauth.None(), this.tokens.refresh_token, insecure);
    await oauth.processRevocationResponse(response);
    await assert.rejects(this.ask('tools/list'), (error) =>
      error instanceof oauth.WWWAuthenticateChallengeError && error.cause[0].parameters.error === 'invalid_token');
    return 'by the client';
  }
}
