package diagnosis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	window  = 5 * time.Minute // in which the requests of a sender without a ticket are one attempt
	maxText = 300             // bytes
)

// idOf returns the id of the attempt that an entry at this time belongs to.
func idOf(e attempt.Entry, at time.Time) string {
	if e.Attempt != "" {
		return e.Attempt
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %t %d", e.Address, e.Agent, e.Client,
		e.Kind.Is(attempt.Discovery), at.Truncate(window).Unix()))
	return hex.EncodeToString(sum[:8])
}

// idsOf returns the ids of the attempts that the entries may belong to: an attempt at the end of a
// window may go on in the next one.
func idsOf(entries []attempt.Entry) []string {
	ids := map[string]bool{}
	for _, e := range entries {
		ids[idOf(e, e.At)], ids[idOf(e, e.At.Add(-window))] = true, true
	}
	return slices.Sorted(maps.Keys(ids))
}

// Store adds the entries to attempts in the log, in one transaction.
func Store(ctx context.Context, log attempt.Log, entries []attempt.Entry) error {
	return log.ChangeAttempts(ctx, idsOf(entries), func(found []attempt.Attempt) []attempt.Attempt {
		return merge(found, entries)
	})
}

// merge adds the entries to those attempts, or to new ones, and returns what it has changed.
func merge(found []attempt.Attempt, entries []attempt.Entry) (changed []attempt.Attempt) {
	attempts, ids := map[string]*attempt.Attempt{}, map[string]bool{}
	for i := range found {
		attempts[found[i].ID] = &found[i]
	}
	for _, e := range entries {
		id, earlier := idOf(e, e.At), attempts[idOf(e, e.At.Add(-window))]
		if attempts[id] == nil && earlier != nil && e.At.Sub(earlier.At) < clientLimit {
			id = earlier.ID
		}
		if attempts[id] == nil {
			attempts[id] = &attempt.Attempt{ID: id, Begun: e.At}
		}
		e.Client, e.Agent, e.Reason = printable(e.Client), printable(e.Agent), printable(e.Reason)
		attempts[id].Add(e)
		ids[id] = true
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		changed = append(changed, *attempts[id])
	}
	return changed
}

// printable truncates a text of a client, masks tokens of this server in it, and replaces all but
// printable ASCII, because terminals show it.
func printable(text string) string {
	text = strings.Map(func(c rune) rune {
		switch {
		case c == '\n': // of errors.Join
			return ' '
		case c < ' ' || c > '~':
			return '?'
		}
		return c
	}, oauth.MaskTokens(text))
	return text[:min(len(text), maxText)]
}
