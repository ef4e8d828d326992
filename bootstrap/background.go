package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// secretInterval is the interval of the check for a replaced server secret.
const secretInterval = time.Second / 2

// agreeOnSecret fails if the store was used with another server secret.
func (a *OAuthServer) agreeOnSecret() error {
	err := a.server.AgreeOnSecret(context.Background())
	if errors.Is(err, oauth.ErrOtherSecret) {
		return fmt.Errorf("%w, so this process cannot unseal what is in it: restore the secret that was backed "+
			"up with it, or copy the file of server-secret from another replica; if it is lost, \"pasteport keys "+
			"rotate --forget-old\" generates another one, and clients connect again", err)
	}
	return err
}

// watchSecret compares the server secret with that of the other replicas, and stores the
// fingerprint of a new one. A replica that does not have the newest secret yet treats the tokens
// that it does not know as an outage.
func (a *OAuthServer) watchSecret(ctx context.Context) {
	failing := false
	go every(ctx, secretInterval, func(ctx context.Context) {
		err := a.server.AgreeOnSecret(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			a.config.Logger.WarnContext(ctx, "cannot agree with the other replicas on the server secret", "error", err)
		}
		failing = err != nil
	})
}

const (
	flushInterval = time.Second
	flushTimeout  = 5 * time.Second
)

// flushUses writes the last uses of grants.
func (a *OAuthServer) flushUses(ctx context.Context) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	if err := a.server.FlushUses(limited); err != nil {
		a.config.Logger.WarnContext(ctx, "cannot store the last uses of grants", "error", err)
	}
}

// every calls work at each interval until ctx ends.
func every(ctx context.Context, interval time.Duration, work func(context.Context)) {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			work(ctx)
		}
	}
}

// sweepInterval is the interval of the deletion of expired rows. Up to a tenth of it is added at
// random, so that processes do not coincide.
const sweepInterval = 10 * time.Minute

// sweep deletes expired rows at each interval until ctx ends.
func (a *OAuthServer) sweep(ctx context.Context, interval time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval + rand.N(interval/10)): //nolint:gosec // no secret
		}
		rows, err := a.server.Sweep(ctx)
		if err != nil {
			a.config.Logger.WarnContext(ctx, "cannot delete expired rows", "error", err)
			continue
		}
		a.config.Logger.DebugContext(ctx, "deleted expired rows", "rows", rows)
	}
}
