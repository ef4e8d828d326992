package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ofNetwork returns the addresses of a /24 by turns.
func ofNetwork(n uint64) string { return fmt.Sprint(office, 1+n%199) }

// ofThousand returns one of a thousand addresses, each in a /24 of its own.
func ofThousand(n uint64) string { n %= 1000; return fmt.Sprintf("45.%d.%d.1", n/250, n%250) }

// guessFrom pastes wrong tokens into both pages, at full speed.
func guessFrom(address func(n uint64) string) func(context.Context, *scene) {
	return func(ctx context.Context, s *scene) {
		reader := Person{browser: browser{s.network, address(0)}, client: s.client}
		page, err := reader.open(ctx, reader.authorization(rand.Text()+rand.Text()))
		consent, formErr := formIn(page)
		if err = errors.Join(err, formErr); err != nil {
			s.broken(err)
			return
		}
		pages := []form{consent, {action: s.network.issuer + "/oauth/connections"}}
		decisions := []string{"approve", "show"}
		var turn atomic.Uint64
		s.flood(ctx, 64, func(ctx context.Context) { // most of them wait
			n := turn.Add(1)
			p, decision := pages[n%2], decisions[n%2]
			// both pages from each address
			got, err := browser{s.network, address(n / 2)}.post(ctx, p.action,
				p.filled(url.Values{"decision": {decision}, "bearer_token": {wrongPrefix + rand.Text()}}))
			if err == nil && n%2 == 1 && got.status == http.StatusOK {
				s.verifier.guesses.Add(1) // the connections page has looked for it
			}
		})
	}
}

// fetch opens consent pages for clients of four hosts whose path begins so.
func fetch(path string) func(context.Context, *scene) {
	return func(ctx context.Context, s *scene) {
		var origins []string
		for range 4 {
			origin, err := s.hosts.add()
			if err != nil {
				s.broken(err)
				return
			}
			origins = append(origins, origin)
		}
		var n atomic.Int64
		s.flood(ctx, 32, func(ctx context.Context) {
			p := Person{browser: browser{s.network, office + "1"}, client: origins[n.Add(1)%4] + path + rand.Text()}
			_, _ = p.open(ctx, p.authorization(rand.Text()+rand.Text()))
		})
	}
}

// sendUnknownTokens sends made-up codes and refresh tokens to the token endpoint.
func sendUnknownTokens(ctx context.Context, s *scene) {
	var n atomic.Int64
	s.flood(ctx, floodWidth, func(ctx context.Context) {
		made := rand.Text() + rand.Text()
		values := url.Values{"grant_type": {"refresh_token"}, "client_id": {s.client},
			"refresh_token": {"ppr_" + made[:43]}}
		if n.Add(1)%2 == 0 {
			values = url.Values{
				"grant_type":    {"authorization_code"},
				"client_id":     {s.client},
				"code":          {"ppc_" + made[:43]},
				"code_verifier": {made},
				"redirect_uri":  {redirect},
			}
		}
		_, _ = browser{s.network, office + "1"}.post(ctx, s.network.issuer+"/oauth/token", values)
	})
}

// openSessions opens sessions with one grant.
func openSessions(ctx context.Context, s *scene) {
	attacker := s.person(office + "1")
	if err := attacker.Connect(ctx); err != nil {
		s.broken(err)
		return
	}
	s.flood(ctx, floodWidth, func(ctx context.Context) { _, _ = attacker.openSession(ctx, attacker.access) })
}

// register registers clients.
func register(ctx context.Context, s *scene) {
	s.flood(ctx, floodWidth, func(ctx context.Context) {
		_, _ = browser{s.network, office + "1"}.send(ctx, http.MethodPost, s.network.issuer+"/oauth/register",
			`{"redirect_uris":["http://127.0.0.1/callback"]}`, http.Header{"Content-Type": {"application/json"}})
	})
}

// sendSlowly sends bodies of one byte a second.
func sendSlowly(ctx context.Context, s *scene) {
	s.flood(ctx, 1000, func(ctx context.Context) {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.site.address)
		if err != nil {
			_ = pause(ctx, time.Second)
			return
		}
		defer connection.Close()
		_, err = fmt.Fprintf(connection, "POST /oauth/token HTTP/1.1\r\nHost: %s\r\nX-Forwarded-For: %s1\r\n"+
			"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 10000\r\n\r\n", s.site.address, office)
		for err == nil && pause(ctx, time.Second) == nil {
			_, err = strings.NewReader("a").WriteTo(connection)
		}
	})
}

// connectOffice connects 150 clients of one address.
func connectOffice(ctx context.Context, s *scene) error {
	var mu sync.Mutex
	var failures error
	places := make(chan struct{}, floodWidth)
	var connecting sync.WaitGroup
	for range 150 {
		places <- struct{}{}
		connecting.Go(func() {
			defer func() { <-places }()
			p := s.person(office + "1")
			err := p.Connect(ctx)
			mu.Lock()
			defer mu.Unlock()
			failures = errors.Join(failures, err)
			s.office = append(s.office, p)
		})
	}
	connecting.Wait()
	return failures
}

// reconnectOffice ends every grant, as an operator does. All clients of the office are then
// refused, and connect again.
func reconnectOffice(ctx context.Context, s *scene) {
	if err := s.site.command(ctx, "grants", "end", "--all", "--yes"); err != nil {
		s.broken(err)
		return
	}
	places := make(chan struct{}, floodWidth)
	var connecting sync.WaitGroup
	for _, p := range s.office {
		places <- struct{}{}
		connecting.Go(func() {
			defer func() { <-places }()
			s.attacked.Add(2)
			_ = p.Refresh(ctx)
			if err := p.Connect(ctx); err != nil && ctx.Err() == nil {
				s.broken(err)
			}
		})
	}
	connecting.Wait()
	<-ctx.Done()
}

// floodWidth is how many connections an attack at full speed has.
const floodWidth = 8

// flood sends requests over that many connections at full speed until the context ends.
func (s *scene) flood(ctx context.Context, connections int, send func(context.Context)) {
	var sending sync.WaitGroup
	defer sending.Wait()
	for range connections {
		sending.Go(func() {
			for ctx.Err() == nil {
				s.attacked.Add(1)
				send(ctx)
			}
		})
	}
}
