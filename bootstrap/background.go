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

// agreeOnSecret fails if replicas on the same store have another server secret.
func (a *OAuthServer) agreeOnSecret() error {
	err := a.server.AgreeOnSecret(context.Background())
	if errors.Is(err, oauth.ErrOtherSecret) {
		return fmt.Errorf("%w: this replica cannot unseal data of the others: copy their file of server-secret; "+
			"if it is lost, \"pasteport keys rotate --forget-old\" creates a new secret, and all clients have to connect again", err)
	}
	return err
}

// watchSecret stores the fingerprint of a new server secret, so that replicas that do not have it yet treat a failed unsealing as an outage and do not end
// the grant (J6).
func (a *OAuthServer) watchSecret(ctx context.Context) {
	keys := a.server.Settings().Keys
	agreed, _ := keys.SecretFingerprints() // at the start
	go every(ctx, secretInterval, func(ctx context.Context) {
		prints, err := keys.SecretFingerprints()
		if err != nil || len(agreed) > 0 && prints[0] == agreed[0] {
			return
		}
		err = a.server.AgreeOnSecret(ctx)
		if err == nil || errors.Is(err, oauth.ErrOtherSecret) {
			agreed = prints
		}
		if err != nil && ctx.Err() == nil {
			a.config.Logger.WarnContext(ctx, "cannot store the fingerprint of the new server secret", "error", err)
		}
	})
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
