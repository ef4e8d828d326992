// The oidc-provider peer of the benchmarks. It implements the protocol of ../server/server.go.
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import http from 'node:http'
import readline from 'node:readline'
import Provider from 'oidc-provider'
import { MapStore } from './store.js'

const redirect = 'http://127.0.0.1:4321/callback'
const hostTokenPrefix = 'bench_token-of-a-person-'
const pong = '{"jsonrpc":"2.0","id":1,"result":{}}\n'

const read = async stream => {
  const parts = []
  for await (const part of stream) parts.push(part)
  return Buffer.concat(parts).toString()
}

function configuration (client) {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    adapter: MapStore,
    clients: [{
      client_id: client, redirect_uris: [redirect], token_endpoint_auth_method: 'none', application_type: 'native',
      grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'], id_token_signed_response_alg: 'ES256'
    }],
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'ES256' }] },
    cookies: { keys: [randomBytes(32).toString('hex')] },
    pkce: { required: () => true },
    rotateRefreshToken: true,
    features: { devInteractions: { enabled: false }, revocation: { enabled: true, allowedPolicy: async () => true } },
    routes: { authorization: '/oauth/authorize', token: '/oauth/token', revocation: '/oauth/revoke', userinfo: '/userinfo' },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    findAccount: async (_, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
    ttl: { AccessToken: 3600, AuthorizationCode: 300, RefreshToken: 2592000, Grant: 2592000, Interaction: 600, Session: 3600, IdToken: 3600 }
  }
}

const page = action => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Connect an app</title></head>
<body><form method="post" action="${action}"><input type="password" name="bearer_token"><button name="decision" value="approve">Approve</button></form>
</body></html>`

async function interact (provider, request, response) {
  const details = await provider.interactionDetails(request, response)
  if (request.method === 'GET') {
    response.setHeader('Content-Type', 'text/html; charset=utf-8')
    return response.end(page(request.url))
  }
  const form = new URLSearchParams(await read(request))
  if (!form.get('bearer_token')?.startsWith(hostTokenPrefix)) {
    response.statusCode = 403
    return response.end()
  }
  const grant = new provider.Grant({ accountId: 'somebody', clientId: details.params.client_id })
  grant.addOIDCScope(details.params.scope)
  await provider.interactionFinished(request, response, { login: { accountId: 'somebody' }, consent: { grantId: await grant.save() } })
}

async function guard (provider, request, response) {
  const token = await provider.AccessToken.find(request.headers.authorization?.slice('Bearer '.length) ?? '')
  await read(request)
  response.statusCode = token?.isValid ? 200 : 401
  response.setHeader('Content-Type', 'application/json')
  response.end(token?.isValid ? pong : '')
}

function serve (order) {
  const server = http.createServer({ keepAliveTimeout: 60_000 })
  server.listen(0, '127.0.0.1', () => {
    const url = `http://127.0.0.1:${server.address().port}`
    const provider = new Provider(url, configuration(order.Client))
    const callback = provider.callback()
    const failed = response => error => { response.statusCode = 500; response.end(String(error)) }
    server.on('request', (request, response) => {
      if (request.url === '/mcp') return guard(provider, request, response).catch(failed(response))
      if (request.url.startsWith('/interaction/')) return interact(provider, request, response).catch(failed(response))
      callback(request, response)
    })
    process.stdout.write(JSON.stringify({ URL: url }) + '\n')
  })
}

console.warn = console.info = () => {} // it would warn about plain http
const lines = readline.createInterface({ input: process.stdin })
let ordered = false
lines.on('line', line => {
  if (ordered) return process.stdout.write('\n')
  ordered = true
  serve(JSON.parse(line))
})
lines.on('close', () => process.exit(0))
