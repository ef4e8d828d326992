// Package diagnosis finds out how far the attempts of clients to connect have come, and why they
// stopped. Store adds steps to attempts; Read gives each stored attempt a verdict and a remedy.
package diagnosis

import (
	"cmp"
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

// State is what an operator sees of the progress.
type State string

// An attempt UnderWay waits for its next step, and one that is HalfWay has waited too long.
const (
	UnderWay  State = "under way"
	HalfWay   State = "half way"
	Stopped   State = "stopped"
	Connected State = "connected"
	Ended     State = "ended"
)

// Attempt is an attempt to connect with its diagnosis.
type Attempt struct {
	attempt.Attempt
	Doctor  bool         `json:"doctor,omitempty"` // pasteport doctor made the attempt
	State   State        `json:"state"`
	Missing attempt.Kind `json:"missing,omitempty"` // the step that has to follow
	Verdict string       `json:"verdict"`
	Hint    string       `json:"hint,omitempty"` // the remedy
}

// Read returns the attempts that the log keeps, as they are at the time now, the newest first.
func Read(ctx context.Context, log attempt.Log, now time.Time) ([]Attempt, error) {
	stored, err := log.Attempts(ctx, now.Add(-attempt.Memory))
	return diagnose(stored, now), err
}

func diagnose(stored []attempt.Attempt, now time.Time) []Attempt {
	type sender struct{ address, agent string } // all that a client without a ticket shows
	granted := map[sender]bool{}
	for _, a := range stored {
		granted[sender{a.Address, a.Agent}] = granted[sender{a.Address, a.Agent}] || a.Progress > attempt.Begun
	}
	attempts := make([]Attempt, 0, len(stored))
	for _, a := range stored {
		made := Attempt{Attempt: a, Doctor: attempt.IsDoctor(a.Agent)}
		made.judge(now, !granted[sender{a.Address, a.Agent}])
		attempts = append(attempts, made)
	}
	return attempts
}

// WithoutDoctor returns the attempts of clients, and the number of those of pasteport doctor. Every
// sender can choose its user agent, so a list that hides attempts has to say how many.
func WithoutDoctor(all []Attempt) (clients []Attempt, doctors int) {
	clients = make([]Attempt, 0, len(all))
	for _, a := range all {
		if !a.Doctor {
			clients = append(clients, a)
		}
	}
	return clients, len(all) - len(clients)
}

// Find returns the attempt whose id, or the id of one of its requests, begins with id. It returns
// false if there is none or more than one.
func Find(attempts []Attempt, id string) (found Attempt, ok bool) {
	matches := 0
	for _, a := range attempts {
		hasRequest := slices.ContainsFunc(a.Steps, func(s attempt.Step) bool {
			return strings.HasPrefix(s.Request, id)
		})
		if id != "" && (hasRequest || oauth.MatchesID(id, a.ID)) {
			found, matches = a, matches+1
		}
	}
	return found, matches == 1
}

// Who returns the host of the client, the name of one that registered itself, or its user agent or
// address.
func (a *Attempt) Who() string {
	if registered, ok := strings.CutPrefix(a.Client, oauth.SelfRegistered+"/"); ok {
		_, name, _ := strings.Cut(registered, " ")
		return strings.TrimSpace(oauth.SelfRegistered + " " + name)
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(a.Client, "http://"), "https://"), "/")
	return cmp.Or(host, a.Agent, a.Address, "unknown")
}

const window = 5 * time.Minute // in which the requests of a sender without a ticket are one attempt

// idOf returns the id of the attempt to which the entry belongs if its time is at.
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

// merge adds the entries to the found attempts, or to new ones, and returns those that changed.
func merge(found []attempt.Attempt, entries []attempt.Entry) (changed []attempt.Attempt) {
	attempts, touched := map[string]*attempt.Attempt{}, map[string]bool{}
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
		touched[id] = true
	}
	for _, id := range slices.Sorted(maps.Keys(touched)) {
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
	return text[:min(len(text), 300)]
}
