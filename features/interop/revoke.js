// Revocation over plain HTTP, for clients without support for it.
import assert from 'node:assert/strict';

// revoke revokes a refresh token with its grant, and an access token alone.
export async function revoke(world, token, clientID = world.clientID) {
  const body = new URLSearchParams({ token, client_id: clientID });
  const answer = await fetch(`${world.issuer}/oauth/revoke`, { method: 'POST', body });
  assert.equal(answer.status, 200, await answer.text());
}
