package oauth

import (
	"slices"
	"time"
)

// SurplusGrants returns the ids of those grants of one host token that end because there are more than limit (J14): expired grants first,
// then those that were unused for longest. The grant with the id made, which is new, never ends.
func SurplusGrants(grants []*AccessGrant, made string, limit int, now time.Time) (surplus map[string]bool) {
	if len(grants) <= limit {
		return nil
	}
	others := slices.DeleteFunc(slices.Clone(grants), func(g *AccessGrant) bool { return g.id == made })
	slices.SortStableFunc(others, func(a, b *AccessGrant) int { return a.lastSeen(now).Compare(b.lastSeen(now)) })
	surplus = map[string]bool{}
	for _, g := range others[:min(len(others), len(grants)-limit)] {
		surplus[g.id] = true
	}
	return surplus
}

// NearMaxGrants reports whether a host token has nine tenths of the connections that it may have (J15).
func (l Limits) NearMaxGrants(connections int) bool { return 10*connections >= 9*l.MaxGrantsPerToken }

// lastSeen returns when a living grant was last used, or made if it never was; zero for any other grant.
func (g *AccessGrant) lastSeen(now time.Time) time.Time {
	shown, alive := g.Connection(now)
	if !alive {
		return time.Time{}
	}
	return shown.LastSeen()
}

// LastSeen returns when the connection was last used, or made if it never was.
func (c Connection) LastSeen() time.Time {
	if c.LastUsedAt.IsZero() {
		return c.CreatedAt
	}
	return c.LastUsedAt
}
