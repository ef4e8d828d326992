package service

import "github.com/pasteport/pasteport/bootstrap/settings"

func (c *Config) limits() settings.Group {
	l := &c.Limits
	return settings.Group{Title: "Limits", Settings: []*settings.Setting{
		settings.Switch("weak-tokens", &l.WeakTokens, "for tokens of less than 64 bits: refuse all tokens from addresses, and on pages, with too many wrong ones"),
		settings.List("unlimited-networks", &l.UnlimitedNetworks, networkItem, "networks to which no limit by address applies").Otherwise("none").Like("203.0.113.0/24"),
		settings.Number("max-wrong-tokens-per-address", &l.MaxWrongTokensPerAddress, "wrong tokens of an IPv4 address or an IPv6 /64 in 5m, before each further one needs a proof of work"),
		settings.Number("max-wrong-tokens-per-network", &l.MaxWrongTokensPerNetwork, "the same for a /24 or an IPv6 /56"),
		settings.Number("max-wrong-tokens-per-prefix48", &l.MaxWrongTokensPerPrefix48, "the same for an IPv6 /48"),
		settings.Number("max-wrong-tokens", &l.MaxWrongTokens, "wrong tokens of all addresses in 1m, before tokens from unknown addresses need a proof of work"),
		settings.Number("max-attempts-per-token", &l.MaxAttemptsPerToken, "attempts in 1m with a token that has living connections, before it needs a proof of work"),
		settings.Number("proof-bits", &l.ProofBits, "difficulty of a proof of work; each bit doubles it, at most 16"),
		settings.Duration("proof-wait", &l.ProofWait, "how long browsers without script wait instead, at most 1m; ten from one address get in within that time"),
		settings.Number("max-verifications", &l.MaxVerifications, "tokens that one verifier checks at once"),
		settings.Number("max-verifications-per-address", &l.MaxVerificationsPerAddress, "how many of them may be from one address"),
		settings.Number("max-fetches", &l.MaxFetches, "metadata documents that are fetched at once"),
		settings.Number("max-fetches-per-address", &l.MaxFetchesPerAddress, "how many of them one address may cause"),
		settings.Number("max-fetches-per-domain", &l.MaxFetchesPerDomain, "how many of them may be from one registrable domain"),
		settings.Number("max-fetches-per-minute-and-address", &l.MaxFetchesPerMinuteAndAddress, "unknown metadata documents that one address may cause to be fetched in 1m; beyond that, three from each registrable domain"),
		settings.Number("max-fetches-per-minute-and-domain", &l.MaxFetchesPerMinuteAndDomain, "unknown metadata documents that are fetched from one registrable domain in 1m; above that, only networks that have used less than their share may fetch"),
		settings.Number("max-unknown-tokens-per-minute", &l.MaxUnknownTokensPerMinute, "unknown codes and refresh tokens that one address may send in 1m"),
		settings.Number("max-sessions", &l.MaxSessions, "open MCP sessions of one server in each replica; one more ends the idlest session of the person with most"),
		settings.Number("max-sessions-per-person", &l.MaxSessionsPerPerson, "how many of them one person may have; one more ends their idlest session"),
		settings.Number("max-grants-per-token", &l.MaxGrantsPerToken, "connections made with one token; one more ends the one that was unused for longest"),
	}}
}
