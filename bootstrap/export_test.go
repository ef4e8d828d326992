package bootstrap

import "time"

// WithSweepEvery lets a spec not wait for ten minutes.
func WithSweepEvery(every time.Duration) OAuthOption {
	return func(p *parts) { p.sweepEvery = every }
}
