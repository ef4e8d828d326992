package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// scene is a row while it runs: the site, the attackers and the honest people.
type scene struct {
	row       row
	site      *site
	verifier  *verifier
	hosts     *hosts
	people    *network
	attackers *network
	client    string // client_id of the app that most people use

	addresses atomic.Int64 // given to honest people so far
	attacked  atomic.Int64 // requests of the attack so far
	looked    atomic.Int64 // wrong tokens that the connections page has looked up

	mu   sync.Mutex
	kept []*Person // who came before the attack
}

// office is the network address that honest people share with others.
const office = "198.51.100.7"

// openScene starts everything for a row.
func openScene(ctx context.Context, r row, on *store, o options, dir string) (s *scene, err error) {
	s = &scene{row: r, verifier: startVerifier(r.delay)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.hosts, err = startHosts(dir); err != nil {
		return s, err
	}
	settings := append(s.verifier.settings(), r.settings...)
	if s.site, err = startSite(ctx, o, on, dir, s.hosts.certificates, settings); err != nil {
		return s, err
	}
	s.people, s.attackers = s.site.network(), s.site.network()
	s.client, err = s.newClient("client")
	return s, err
}

func (s *scene) close() (err error) {
	if s.people != nil {
		s.people.close()
		s.attackers.close()
	}
	if s.site != nil {
		err = s.site.stop()
	}
	if s.hosts != nil {
		err = errors.Join(err, s.hosts.stop(), os.Remove(s.hosts.certificates))
	}
	s.verifier.server.Close()
	return err
}

// newClient returns the client_id of an app on a new host. kind is the first part of its path.
func (s *scene) newClient(kind string) (string, error) {
	origin, err := s.hosts.add()
	return fmt.Sprintf("%s/%s/%s.json", origin, kind, rand.Text()), err
}

// cleanAddress returns an address in a network that sends nothing else, of IPv4 and of IPv6 by
// turns.
func (s *scene) cleanAddress() string {
	n := s.addresses.Add(1)
	if n%2 == 0 {
		return netip.AddrFrom4([4]byte{20, byte(n >> 8), byte(n), 7}).String()
	}
	return fmt.Sprintf("2a01:%x::7", n)
}

// person returns an honest person with a token of their own, who uses the app that most people use.
// One in ten has no script.
func (s *scene) person(address string) *Person {
	n := s.addresses.Load()
	return &Person{
		browser:  browser{s.people, address},
		token:    rightPrefix + rand.Text(),
		client:   s.client,
		noScript: n%10 == 9,
	}
}

// attack counts one request of the attack from the address.
func (s *scene) attack(address string) browser {
	s.attacked.Add(1)
	return browser{s.attackers, address}
}

func (s *scene) keep(p *Person) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, p)
}

// judged returns how many wrong tokens were checked so far, by the verifier and by the connections
// page.
func (s *scene) judged() int64 { return s.verifier.guesses.Load() + s.looked.Load() }

// outcome is the result of a visit.
type outcome struct {
	took     time.Duration
	noScript bool
	retried  bool
	err      error
}

// gather starts visits for a while, and returns when all people have connected or given up.
func (s *scene) gather(ctx context.Context, lasting time.Duration, c crowd) (all []outcome, err error) {
	until, ticks := time.Now().Add(lasting), time.NewTicker(c.every)
	defer ticks.Stop()
	var visits sync.WaitGroup
	defer visits.Wait()
	var mu sync.Mutex
	for n := 0; time.Now().Before(until) && ctx.Err() == nil; {
		for range c.size {
			p, err := c.person(s, n)
			if err != nil {
				return nil, err
			}
			n++
			visits.Go(func() {
				o := p.attempt(ctx, c.visit)
				mu.Lock()
				defer mu.Unlock()
				all = append(all, o)
			})
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
		}
	}
	visits.Wait()
	return all, ctx.Err()
}

// attempt visits within the patience of the person, which is longer without script.
func (p *Person) attempt(ctx context.Context, visit func(*Person, context.Context) error) outcome {
	limit := patience
	if p.noScript {
		limit += maxWait
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	err := visit(p, ctx)
	return outcome{time.Since(began), p.noScript, p.retries > 0, err}
}

// flood sends requests over that many connections at full speed until the context ends.
func flood(ctx context.Context, connections int, send func(context.Context)) {
	var sending sync.WaitGroup
	defer sending.Wait()
	for range connections {
		sending.Go(func() {
			for ctx.Err() == nil {
				send(ctx)
			}
		})
	}
}

// pace sends requests at a fixed rate until the context ends. At most unanswered requests are
// pending.
func pace(ctx context.Context, perSecond float64, unanswered int, send func(context.Context)) {
	ticks := time.NewTicker(time.Duration(float64(time.Second) / perSecond))
	defer ticks.Stop()
	var sending sync.WaitGroup
	defer sending.Wait()
	places := make(chan struct{}, unanswered)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		select {
		case places <- struct{}{}:
			sending.Go(func() { defer func() { <-places }(); send(ctx) })
		default:
		}
	}
}
