package bootstrap

import (
	"context"
	"math/rand/v2"
	"time"
)

// sweepEvery is how often expired rows are forgotten (H6), give or take a tenth so that processes on one store spread out.
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
			a.config.Logger.WarnContext(ctx, "sweep failed", "error", err)
			continue
		}
		a.config.Logger.DebugContext(ctx, "swept", "rows", rows)
	}
}
