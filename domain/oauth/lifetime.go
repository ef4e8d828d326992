package oauth

import "time"

// Off is a Lifetime that is switched off. Every negative value means the same.
const Off time.Duration = -1

// Lifetime is a duration of a Config with its default and bounds.
type Lifetime struct {
	Field                string
	Value                *time.Duration
	Default, Least, Most time.Duration
	MayBeOff             bool
}

// Lifetimes returns the durations of a Config.
func (c *Config) Lifetimes() []Lifetime {
	const day = 24 * time.Hour
	return []Lifetime{
		{"AccessTokenTTL", &c.AccessTokenTTL, time.Hour, time.Minute, day, false},
		{"AuthCodeTTL", &c.AuthCodeTTL, 5 * time.Minute, 10 * time.Second, 10 * time.Minute, false},
		{"GrantTTL", &c.GrantTTL, 180 * day, shortestGrant, MaxGrantTTL, false},
		{"RefreshIdleTTL", &c.RefreshIdleTTL, 30 * day, max(time.Hour, c.AccessTokenTTL), MaxGrantTTL, false},
		{"RefreshGrace", &c.RefreshGrace, 5 * time.Minute, time.Second, time.Hour, true},
		{"RecheckEvery", &c.RecheckEvery, Off, time.Minute, MaxGrantTTL, true},
	}
}

const shortestGrant = time.Hour

// MaxGrantTTL is the upper bound of GrantTTL and RefreshIdleTTL. No sealed data is needed for
// longer.
const MaxGrantTTL = 365 * 24 * time.Hour
