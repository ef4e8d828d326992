package limits

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

const registrationsWindow = time.Minute

// Registrations is an oauth.RegistrationLimit of this process alone. It is safe for concurrent use.
type Registrations struct {
	limits oauth.Limits
	mu     sync.Mutex
	memory *Memory
}

var _ oauth.RegistrationLimit = (*Registrations)(nil)

// NewRegistrations returns the limits on the registrations of a minute.
func NewRegistrations(limits oauth.Limits) *Registrations {
	return &Registrations{limits: limits, memory: NewMemory()}
}

// Admit implements oauth.RegistrationLimit. A refused registration counts nowhere, so that one
// address cannot use up the total.
func (r *Registrations) Admit(by oauth.Requester, now time.Time) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	windows := r.windows(by)
	counts, _ := r.memory.Counts(context.Background(), now, windows...) // memory never fails
	for i, window := range windows {
		wait = max(wait, window.Wait(counts[i], now))
	}
	if wait == 0 {
		_ = r.memory.Count(context.Background(), now, windows...)
	}
	return wait
}

// windows returns the window of all addresses, and those of the networks around the address. A
// larger network may register more.
func (r *Registrations) windows(by oauth.Requester) []oauth.Window {
	windows := []oauth.Window{registrationsOf("", r.limits.MaxRegistrationsPerMinute)}
	limit := r.limits.MaxRegistrationsPerMinuteAndAddress
	for _, network := range by.Networks() {
		windows = append(windows, registrationsOf(network.String(), limit))
		limit *= growth
	}
	return windows
}

func registrationsOf(network string, limit int) oauth.Window {
	return oauth.Window{Name: sha256.Sum256([]byte(network)), Limit: limit, Length: registrationsWindow}
}
