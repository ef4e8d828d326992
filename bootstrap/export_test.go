package bootstrap

import "time"

// WithSweepEvery sets the interval of sweeps.
func WithSweepEvery(every time.Duration) OAuthOption {
	return func(o *oauthOptions) { o.sweepInterval = every }
}
