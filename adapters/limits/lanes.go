// Package limits counts what people and networks may do, and makes them wait. Lanes decides when a
// pasted token is checked. Rates, Registrations, Failures and Calls count events. Everything counts
// for this process only.
package limits

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pasteport/pasteport/application/cache"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/quota"
)

const (
	wrongTokensIn = 5 * time.Minute     // the time in which a network gets its wrong tokens back
	knownFor      = 30 * 24 * time.Hour // a token that was right
	refusedFor    = 5 * time.Second     // a wrong token, without another check
	turn          = time.Second         // between two checks in the slow lane
	fastWait      = 10 * time.Second    // for the checks of others in the network

	maxRight = 60_000 // entries: one of a token for each resource, and one for the connections page

	// How many of a network, and of one address in it, may wait for a turn.
	maxWaiting           = 16
	maxWaitingPerAddress = 4
)

// Lanes is a quota.Lanes of this process alone. A network whose wrong tokens are used up is in
// the slow lane, where one token a second is checked. Every other network is in the fast lane, and
// so is every token that this process has found right before.
type Lanes struct {
	wrongTokens int
	now         func() time.Time
	observe     quota.Observer

	mu       sync.Mutex
	networks *cache.LRU[netip.Prefix, *lane]
	right    *cache.LRU[tokenAt, time.Time]
	wrong    *cache.LRU[tokenAt, time.Time]
}

// lane is the state of a network: a /24 or a /56.
type lane struct {
	free     *rate.Limiter // wrong tokens that do not slow it down
	used     time.Time
	checking int           // tokens in the fast lane, which may turn out wrong
	checked  chan struct{} // closed when one of them has left; nil while none waits for that
	next     time.Time     // when the next turn begins
	waiting  []string      // addresses that wait for a turn
}

// tokenAt is a token at the verifier of a resource, and at "" on the connections page.
type tokenAt struct {
	token    oauth.Fingerprint
	resource string
}

// NewLanes returns lanes in which a network may present that many different wrong tokens in five
// minutes before it is slow.
func NewLanes(wrongTokens int, now func() time.Time, observe quota.Observer) *Lanes {
	return &Lanes{
		wrongTokens: wrongTokens,
		now:         now,
		observe:     observe,
		networks:    cache.New[netip.Prefix, *lane](maxKeys),
		right:       cache.New[tokenAt, time.Time](maxRight),
		wrong:       cache.New[tokenAt, time.Time](maxKeys),
	}
}

// Enter implements quota.Lanes.
func (l *Lanes) Enter(ctx context.Context, guess quota.Guess) (func(quota.Result), error) {
	late := time.NewTimer(fastWait)
	defer late.Stop()
	for {
		l.mu.Lock()
		now := l.now()
		token := tokenAt{guess.Token, guess.Resource}
		if within(l.wrong, token, refusedFor, now) {
			l.mu.Unlock()
			return nil, oauth.Refuse(oauth.WrongHostToken, "B8", "the site did not know this token a moment ago")
		}
		if !guess.By.Limited() || within(l.right, token, knownFor, now) {
			l.mu.Unlock()
			return func(result quota.Result) { l.leave(guess, nil, result) }, nil
		}
		n := l.laneOf(guess.By, now)
		free := n.free.TokensAt(now)
		switch {
		case free < 1:
			return l.takeTurn(ctx, guess, n, now) // unlocks
		case free >= float64(n.checking+1): // even if all tokens under way turn out wrong
			n.checking++
			l.mu.Unlock()
			return func(result quota.Result) { l.leave(guess, n, result) }, nil
		}
		if guess.AtOnce {
			l.mu.Unlock()
			return nil, l.refuse(turn)
		}
		if n.checked == nil {
			n.checked = make(chan struct{})
		}
		checked := n.checked
		l.mu.Unlock()
		select {
		case <-checked:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-late.C:
			return nil, oauth.RefuseFor(turn, oauth.HostTokenNotVerifiable, "B20",
				"too many tokens of this network are being checked")
		}
	}
}

// laneOf returns the lane of a requester's network. It is a new one if the clock was set back since
// its last use, because a limiter gains nothing until the clock has caught up.
func (l *Lanes) laneOf(by quota.Requester, now time.Time) *lane {
	prefix := by.Networks()[1] // the /24 or /56
	n, found := l.networks.Get(prefix)
	if !found || n.used.Sub(now) > maxClockDifference {
		n = &lane{free: rate.NewLimiter(rate.Every(wrongTokensIn/time.Duration(l.wrongTokens)), l.wrongTokens)}
		l.networks.Add(prefix, n)
	}
	n.used = now
	return n
}

// takeTurn waits for the turn of a guess in the slow lane. It unlocks the lanes. A canceled request
// keeps its place until its turn, so that one address cannot use up the turns of its network.
func (l *Lanes) takeTurn(ctx context.Context, guess quota.Guess, n *lane, now time.Time) (func(quota.Result),
	error) {
	wait, address, ofAddress := max(0, n.next.Sub(now)), guess.By.Address(), 0
	for _, other := range n.waiting {
		if other == address {
			ofAddress++
		}
	}
	isFull := len(n.waiting) >= maxWaiting || ofAddress >= maxWaitingPerAddress
	if wait > 0 && (guess.AtOnce || isFull) {
		l.mu.Unlock()
		return nil, l.refuse(wait)
	}
	if wait > 0 {
		l.observe.Observe(quota.WrongTokens, quota.Slowed)
	}
	n.next = now.Add(wait + turn)
	n.waiting = append(n.waiting, address)
	come := make(chan struct{})
	time.AfterFunc(wait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		at := slices.Index(n.waiting, address)
		n.waiting = slices.Delete(n.waiting, at, at+1)
		close(come)
	})
	l.mu.Unlock()
	select {
	case <-come:
		return func(result quota.Result) { l.leave(guess, nil, result) }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *Lanes) refuse(wait time.Duration) error {
	l.observe.Observe(quota.WrongTokens, quota.Refused)
	return oauth.RefuseFor(wait, oauth.TooManyGuesses, "B6", "too many wrong tokens from this network")
}

// leave records the result of a guess. in is the lane that counts it as under way, or nil.
func (l *Lanes) leave(guess quota.Guess, in *lane, result quota.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	token := tokenAt{guess.Token, guess.Resource}
	switch result {
	case quota.Right:
		l.remember(token, now)
	case quota.Wrong:
		if guess.By.Limited() && !within(l.wrong, token, wrongTokensIn, now) {
			l.laneOf(guess.By, now).free.AllowN(now, 1)
		}
		l.wrong.Add(token, now)
	}
	if in != nil {
		if in.checking--; in.checked != nil {
			close(in.checked)
			in.checked = nil
		}
	}
}

// Remember implements quota.Lanes.
func (l *Lanes) Remember(token oauth.Fingerprint, resource string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remember(tokenAt{token, resource}, l.now())
}

// remember makes a right token known to its resource, and to the connections page.
func (l *Lanes) remember(token tokenAt, now time.Time) {
	l.wrong.Remove(token)
	l.right.Add(token, now)
	l.right.Add(tokenAt{token: token.token}, now)
}

// within reports whether the time of a key is less than interval before now. It ignores a time
// after now: the clock was set back.
func within[K comparable](times *cache.LRU[K, time.Time], key K, interval time.Duration, now time.Time) bool {
	at, found := times.Get(key)
	age := now.Sub(at)
	return found && 0 <= age && age < interval
}
