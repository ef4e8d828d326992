// An oidc-provider adapter without a size limit: the built-in one keeps only a thousand entries.
const entries = new Map()
const byGrant = new Map()
const byUid = new Map()

export class MapStore {
  constructor (model) { this.model = model }

  key (id) { return `${this.model}:${id}` }

  async upsert (id, payload) {
    const key = this.key(id)
    entries.set(key, payload)
    if (payload.uid) byUid.set(payload.uid, key)
    if (!payload.grantId || this.model === 'Session') return
    const members = byGrant.get(payload.grantId)
    if (members) members.add(key)
    else byGrant.set(payload.grantId, new Set([key]))
  }

  async find (id) { return entries.get(this.key(id)) }

  async findByUid (uid) { return entries.get(byUid.get(uid)) }

  async findByUserCode () { return undefined }

  async consume (id) { entries.get(this.key(id)).consumed = Math.floor(Date.now() / 1000) }

  async destroy (id) {
    const entry = entries.get(this.key(id))
    entries.delete(this.key(id))
    if (entry?.uid) byUid.delete(entry.uid)
  }

  async revokeByGrantId (grantId) {
    for (const key of byGrant.get(grantId) ?? []) entries.delete(key)
    byGrant.delete(grantId)
  }
}
