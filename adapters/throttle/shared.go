package throttle

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// givingBack is how long the store may take to take back a guess that was right.
const givingBack = 5 * time.Second

// SharedGuesses is an oauth.GuessLimit with the limits of Guesses, counted for every process that uses the counter. It counts a guess
// before it is judged, so whoever comes while the last places are being judged is told to wait for the whole window.
type SharedGuesses struct {
	counter oauth.WindowCounter
	keys    oauth.Keys
	logger  *slog.Logger
}

var _ oauth.GuessLimit = (*SharedGuesses)(nil)

// NewSharedGuesses counts under names that only the server secret can make.
func NewSharedGuesses(counter oauth.WindowCounter, keys oauth.Keys, logger *slog.Logger) *SharedGuesses {
	return &SharedGuesses{counter, keys, logger}
}

// Attempt implements oauth.GuessLimit. What cannot be given back stays counted.
func (g *SharedGuesses) Attempt(ctx context.Context, address, ticket string, now time.Time) (settle func(failed bool), wait time.Duration, err error) {
	windows, err := g.windows(address, ticket)
	if err == nil {
		wait, err = g.counter.Take(ctx, now, windows...)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%w: counting a guess: %w", oauth.ErrUnavailable, err)
	}
	if wait > 0 {
		return nil, wait, nil
	}
	return func(failed bool) {
		if failed {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), givingBack) // whoever guessed right may have hung up
		defer cancel()
		if err := g.counter.GiveBack(ctx, now, windows...); err != nil {
			g.logger.ErrorContext(ctx, "cannot give a right guess back, so it counts as a wrong one", "error", err)
		}
	}, 0, nil
}

func (g *SharedGuesses) windows(address, ticket string) (windows []oauth.Window, err error) {
	limits := []struct {
		of, subject string
		limit       int
		length      time.Duration
	}{
		{"guesses/address", address, perAddress, perAddressWindow},
		{"guesses/all", "", altogether, altogetherWindow},
		{"guesses/ticket", ticket, perTicket, perTicketWindow},
	}
	if ticket == "" {
		limits = limits[:2]
	}
	for _, l := range limits {
		window, err := g.keys.Window(l.of, l.subject, l.limit, l.length)
		if err != nil {
			return nil, err
		}
		windows = append(windows, window)
	}
	return windows, nil
}
