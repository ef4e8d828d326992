package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// sendUnknownTokens sends made-up codes and refresh tokens to the token endpoint.
func sendUnknownTokens(ctx context.Context, s *scene) {
	var n atomic.Int64
	flood(ctx, floodWidth, func(ctx context.Context) {
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
		_, _ = s.attack(office).post(ctx, s.attackers.issuer+"/oauth/token", values)
	})
}

// officeClients is how many clients connect from one address.
const officeClients = 150

// connectMany connects the clients of the office.
func connectMany(ctx context.Context, s *scene) error {
	var mu sync.Mutex
	var failures error
	places := make(chan struct{}, 4)
	var connecting sync.WaitGroup
	for range officeClients {
		p := s.person(office)
		places <- struct{}{}
		connecting.Go(func() {
			defer func() { <-places }()
			err := p.Connect(ctx)
			mu.Lock()
			defer mu.Unlock()
			failures = errors.Join(failures, err)
			s.kept = append(s.kept, p)
		})
	}
	connecting.Wait()
	return failures
}

// endAll ends every grant, as an operator does. All clients then try to refresh, and are refused.
func endAll(ctx context.Context, s *scene) {
	if err := s.site.command(ctx, "grants", "end", "--all", "--yes"); err != nil {
		fmt.Println(err)
	}
	var refreshing sync.WaitGroup
	for _, p := range s.kept {
		again := *p
		refreshing.Go(func() { s.attacked.Add(1); _ = again.Refresh(ctx) })
	}
	refreshing.Wait()
	<-ctx.Done()
}

// reconnecting connects the clients of the office again, five per second.
func reconnecting() crowd {
	c := crowd{size: 1, every: time.Second / 5, visit: (*Person).Visit}
	c.person = func(s *scene, n int) (*Person, error) {
		p := *s.kept[n%len(s.kept)]
		p.retries = 0
		return &p, nil
	}
	return c
}

const approvals = 101 // with 100 sessions each, more than max-sessions

// connectAttacker connects many apps with one token.
func connectAttacker(ctx context.Context, s *scene) error {
	origins, token := s.addHosts(4), rightPrefix+rand.Text()
	for i := range approvals {
		p := &Person{browser: browser{s.attackers, fmt.Sprintf("203.0.113.%d", 1+i%10)}, token: token}
		p.client = fmt.Sprintf("%s/client/%d", origins[i%4], i)
		if err := p.Connect(ctx); err != nil {
			return fmt.Errorf("connecting the attacker's app: %w", err)
		}
		s.keep(p)
	}
	return nil
}

// openSessions opens sessions with the attacker's grants by turns.
func openSessions(ctx context.Context, s *scene) {
	var n atomic.Int64
	flood(ctx, floodWidth, func(ctx context.Context) {
		p := s.kept[n.Add(1)%int64(len(s.kept))]
		_, _ = s.attack(p.address).openSession(ctx, p.access)
	})
}

const attackersToken = rightPrefix + "of-the-attacker"

// approve pastes one token into one consent page after the other, and redeems no code.
func approve(ctx context.Context, s *scene) {
	flood(ctx, floodWidth, func(ctx context.Context) {
		p := Person{browser: s.attack("203.0.113.1"), client: s.client, token: attackersToken}
		got, err := p.open(ctx, p.authorization(rand.Text()+rand.Text()))
		if err != nil || got.status != http.StatusOK {
			return
		}
		if f, err := formIn(got); err == nil {
			_, _ = p.post(ctx, f.action, f.filled(url.Values{"decision": {"approve"}, "bearer_token": {p.token}}))
		}
	})
}

// attackersPage returns the size of the attacker's connections page.
func attackersPage(ctx context.Context, s *scene) (string, error) {
	p := Person{browser: browser{s.attackers, s.cleanAddress()}, token: attackersToken}
	got, err := p.open(ctx, p.network.issuer+"/oauth/connections")
	if err != nil {
		return "", err
	}
	shown, err := p.fillIn(ctx, got, "show")
	if err != nil || shown.status != http.StatusOK {
		return "", failed("show the attacker's connections", shown, err)
	}
	return fmt.Sprintf("attacker's page: %d connections, %d kB", strings.Count(shown.text, "<article"),
		len(shown.text)/1000), nil
}
