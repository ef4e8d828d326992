package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
)

// page is a form into which attackers paste tokens.
type page struct {
	form
	decision string
	left     int // how often the form may be sent before the site refuses it
}

// guesser pastes wrong tokens into both pages, by turns.
type guesser struct {
	scene   *scene
	address func() string
	// Returns the form for a page that demands work; nil ignores the page.
	answers func(context.Context, demand) url.Values
	turn    atomic.Int64

	mu      sync.Mutex
	consent page
}

const guessesPerTicket = 4 // after the fifth, a site with weak tokens refuses the ticket

// guessFrom guesses at full speed and ignores demands for work.
func guessFrom(address func() string) func(context.Context, *scene) {
	return func(ctx context.Context, s *scene) {
		g := &guesser{scene: s, address: address}
		flood(ctx, floodWidth, g.guess)
	}
}

// guessOn sends the first guesses at once and then perSecond, and ignores demands for work.
func guessOn(first int, perSecond float64, address func() string) func(context.Context, *scene) {
	return func(ctx context.Context, s *scene) {
		g := &guesser{scene: s, address: address}
		for range first {
			g.guess(ctx)
		}
		pace(ctx, perSecond, 200, g.guess)
	}
}

// freshSubnets returns an address in another /64 and another /56 of one /48 each time.
func freshSubnets() func() string {
	var n atomic.Uint32
	return func() string { return fmt.Sprintf("2001:db8:bad:%x::1", n.Add(1)*0x101%0x10000) }
}

// guess pastes one wrong token.
func (g *guesser) guess(ctx context.Context) {
	from, onConnections := g.address(), g.turn.Add(1)%2 == 0
	p := page{form: form{action: g.scene.attackers.issuer + "/oauth/connections"}, decision: "show"}
	if !onConnections {
		var err error
		if p, err = g.consentPage(ctx, from); err != nil {
			return
		}
	}
	got, err := g.scene.attack(from).
		post(ctx, p.action, p.filled(url.Values{"decision": {p.decision}, "bearer_token": {wrongPrefix + rand.Text()}}))
	if d, found := demandIn(got); err == nil && found && g.answers != nil {
		if values := g.answers(ctx, d); values != nil {
			got, err = g.scene.attack(from).post(ctx, d.action, values)
		}
	}
	if err == nil && onConnections && got.status == http.StatusOK {
		g.scene.looked.Add(1)
	}
}

// consentPage returns a consent page whose ticket may still be used.
func (g *guesser) consentPage(ctx context.Context, from string) (page, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.consent.left == 0 {
		reader := Person{browser: browser{g.scene.attackers, from}, client: g.scene.client}
		got, err := reader.open(ctx, reader.authorization(rand.Text()+rand.Text()))
		if err != nil {
			return page{}, err
		}
		f, err := formIn(got)
		if err != nil {
			return page{}, err
		}
		g.consent = page{f, "approve", guessesPerTicket}
	}
	g.consent.left--
	return g.consent, nil
}

// lookAtEmptyPage pastes a right token without connections into the connections page.
func lookAtEmptyPage(ctx context.Context, s *scene) {
	colleague := s.person(office)
	flood(ctx, floodWidth, func(ctx context.Context) {
		_, _ = s.attack(office).post(ctx, s.attackers.issuer+"/oauth/connections",
			url.Values{"decision": {"show"}, "bearer_token": {colleague.token}})
	})
}
