package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// secretEvery is how often a process looks whether its server secret was replaced, to tell the replicas that share its store.
const secretEvery = time.Second / 2

// agreeOnSecret refuses to start with another secret than the replicas that share the store.
func (a *OAuthServer) agreeOnSecret() error {
	err := a.server.AgreeOnSecret(context.Background())
	if errors.Is(err, oauth.ErrOtherSecret) {
		return fmt.Errorf("%w, so this replica could open nothing that the others have sealed: give it their file with server-secret; "+
			"if that one is lost, \"pasteport keys rotate --forget-old\" lets everybody begin with another, and clients connect again", err)
	}
	return err
}

// watchSecret tells the replicas when this one begins to seal with another secret, so that those which it has not reached yet take
// what they cannot open for an outage and not for lost (J6).
func (a *OAuthServer) watchSecret(ctx context.Context) {
	ticks := time.NewTicker(secretEvery)
	defer ticks.Stop()
	keys := a.server.Settings().Keys
	told, _ := keys.SecretFingerprints() // at the start
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		prints, err := keys.SecretFingerprints()
		if err != nil || len(told) > 0 && prints[0] == told[0] {
			continue
		}
		err = a.server.AgreeOnSecret(ctx)
		if err == nil || errors.Is(err, oauth.ErrOtherSecret) {
			told = prints
		}
		if err != nil && ctx.Err() == nil {
			a.config.Logger.WarnContext(ctx, "cannot tell other replicas about a new server secret", "error", err)
		}
	}
}
