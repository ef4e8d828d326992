package diagnosis

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/connection"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	window   = 5 * time.Minute // in which the requests of a sender without a ticket are one attempt
	maxSteps = 30              // of an attempt
	maxText  = 300             // bytes
)

// idOf returns the id of the attempt that an entry at this time belongs to.
func idOf(e connection.Entry, at time.Time) string {
	if e.Attempt != "" {
		return e.Attempt
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %t %d", e.Address, e.Agent, e.Client,
		e.Kind.Is(connection.Discovery), at.Truncate(window).Unix()))
	return hex.EncodeToString(sum[:8])
}

// idsOf returns the ids of the attempts that the entries may belong to: an attempt at the end of a
// window may go on in the next one.
func idsOf(entries []connection.Entry) []string {
	ids := map[string]bool{}
	for _, e := range entries {
		ids[idOf(e, e.At)], ids[idOf(e, e.At.Add(-window))] = true, true
	}
	return slices.Sorted(maps.Keys(ids))
}

// merge adds the entries to those attempts, or to new ones, and returns what it has changed.
func merge(found []connection.Attempt, entries []connection.Entry) (changed []connection.Attempt) {
	attempts, ids := map[string]*connection.Attempt{}, map[string]bool{}
	for i := range found {
		attempts[found[i].ID] = &found[i]
	}
	for _, e := range entries {
		id, earlier := idOf(e, e.At), attempts[idOf(e, e.At.Add(-window))]
		if attempts[id] == nil && earlier != nil && e.At.Sub(earlier.At) < clientLimit {
			id = earlier.ID
		}
		if attempts[id] == nil {
			attempts[id] = &connection.Attempt{ID: id, Begun: e.At}
		}
		add(attempts[id], e)
		ids[id] = true
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		changed = append(changed, *attempts[id])
	}
	return changed
}

// add adds a step to an attempt. Replicas may write steps late.
func add(a *connection.Attempt, e connection.Entry) {
	step := e.Step
	step.Reason = printable(step.Reason)
	a.Client = cmp.Or(a.Client, printable(e.Client))
	if e.Agent != "" && speaksFor(a, e) {
		a.Agent, a.Address = printable(e.Agent), e.Address
	}
	if decides(a, step) {
		a.Last = step
	}
	if a.At.Before(step.At) {
		a.At = step.At
	}
	switch isProof := !step.Kind.Is(connection.Discovery) && !step.Kind.Is(connection.InBrowser); {
	case step.Kind == connection.Ended:
		a.Progress = connection.Over
	case step.Kind == connection.Call && step.Outcome == connection.Passed:
		a.Progress = max(a.Progress, connection.Used)
	case isProof && e.Attempt != "":
		a.Progress = max(a.Progress, connection.Granted)
	}
	insert(a, step)
}

// speaksFor reports whether the user agent of an entry is that of the attempt: the client's rather
// than the browser's, and doctor's only if nobody else takes part, because it hides the attempt.
func speaksFor(a *connection.Attempt, e connection.Entry) bool {
	return a.Agent == "" || IsDoctor(a.Agent) || !IsDoctor(e.Agent) && !e.Kind.Is(connection.InBrowser)
}

// decides reports whether the step decides the verdict: the newest one, the end of a grant, or of
// discovery what came furthest, because some clients try several paths or begin again with another
// transport.
func decides(a *connection.Attempt, step connection.Step) bool {
	rank, last := slices.Index(connection.Discovery, step.Kind), slices.Index(connection.Discovery, a.Last.Kind)
	switch {
	case a.Progress == connection.Over || step.Kind == connection.Ended:
		return step.Kind == connection.Ended
	case rank < 0 || rank > last:
		return !step.At.Before(a.At)
	}
	return rank == last && (step.Outcome == connection.Passed || a.Last.Outcome != connection.Passed)
}

// insert puts the step in its place. A step that repeats the newest one replaces it, except on a
// page, whose request people report. Of too many, those in the middle go.
func insert(a *connection.Attempt, step connection.Step) {
	i := len(a.Steps)
	for i > 0 && a.Steps[i-1].At.After(step.At) {
		i--
	}
	if i > 0 && !step.Kind.Is(connection.InBrowser) {
		before := a.Steps[i-1]
		before.At, before.Request = step.At, step.Request
		if before == step {
			i--
			a.Steps = slices.Delete(a.Steps, i, i+1)
		}
	}
	if a.Steps = slices.Insert(a.Steps, i, step); len(a.Steps) > maxSteps {
		a.Steps = slices.Delete(a.Steps, maxSteps/2, maxSteps/2+1)
	}
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
