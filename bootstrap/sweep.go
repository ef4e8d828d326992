package bootstrap

import (
	"context"
	"math/rand/v2"
	"time"
)

// sweepEvery is the interval of the deletion of expired rows (H6). Up to a tenth of it is added at random, so that processes do not coincide.
const sweepEvery = 10 * time.Minute

func (a *OAuthServer) sweep(ctx context.Context, every time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every + rand.N(every/10)):
		}
		rows, err := a.server.Sweep(ctx)
		if err != nil {
			a.config.Logger.WarnContext(ctx, "cannot delete expired rows", "error", err)
			continue
		}
		a.config.Logger.DebugContext(ctx, "deleted expired rows", "rows", rows)
	}
}
