package oauth

import "time"

// The lifetimes of a Config that names none.
const (
	DefaultAccessTokenTTL = time.Hour
	DefaultAuthCodeTTL    = 5 * time.Minute
	DefaultRefreshIdleTTL = 30 * 24 * time.Hour
	DefaultGrantTTL       = 180 * 24 * time.Hour
	DefaultRefreshGrace   = time.Minute
	DefaultTicketTTL      = 10 * time.Minute
)

// MaxGrantTTL is the most that GrantTTL may be: nothing that is sealed is needed for longer.
const MaxGrantTTL = 365 * 24 * time.Hour

func (c Config) checkTTLs() []error {
	var mistakes []error
	between := func(field Field, value, least, most time.Duration) {
		if value < least || value > most {
			mistakes = append(mistakes, NewMistake("%s is %s: choose from %s to %s", field, value, least, most))
		}
	}
	between("AccessTokenTTL", c.AccessTokenTTL, time.Minute, 24*time.Hour)
	between("AuthCodeTTL", c.AuthCodeTTL, 10*time.Second, 10*time.Minute)
	between("GrantTTL", c.GrantTTL, time.Hour, MaxGrantTTL)
	between("RefreshIdleTTL", c.RefreshIdleTTL, max(time.Hour, c.AccessTokenTTL), 365*24*time.Hour)
	between("TicketTTL", c.TicketTTL, time.Minute, 30*time.Minute)
	if c.RefreshGrace > 5*time.Minute {
		mistakes = append(mistakes, NewMistake("%s is %s: choose at most 5m0s, or a negative value to switch it off", Field("RefreshGrace"), c.RefreshGrace))
	}
	if c.RecheckEvery != 0 && c.RecheckEvery < time.Minute {
		mistakes = append(mistakes, NewMistake("%s is %s: choose at least 1m0s, or 0 to ask at refreshes only", Field("RecheckEvery"), c.RecheckEvery))
	}
	return mistakes
}
