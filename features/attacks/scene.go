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
	row      row
	site     *site
	verifier *verifier
	hosts    *hosts
	network  *network
	client   string // client_id of the app that people use

	addresses atomic.Int64 // given to honest people so far
	attacked  atomic.Int64 // requests of the attack so far
	office    []*Person    // whose clients reconnect

	mu      sync.Mutex
	failure error // of the attack
}

// openScene starts everything for a row.
func openScene(ctx context.Context, r row, o options, dir string) (s *scene, err error) {
	s = &scene{row: r, verifier: startVerifier()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.hosts, err = startHosts(dir); err != nil {
		return s, err
	}
	settings := append(s.verifier.settings(), r.settings...)
	if s.site, err = startSite(o.pasteport, dir, s.hosts.certificates, settings); err != nil {
		return s, err
	}
	s.network = newNetwork(s.site)
	origin, err := s.hosts.add()
	s.client = origin + "/client/" + rand.Text()
	return s, err
}

func (s *scene) close() (err error) {
	if s.network != nil {
		s.network.transport.CloseIdleConnections()
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

// broken fails the row, because the attack did not work.
func (s *scene) broken(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = errors.Join(s.failure, fmt.Errorf("attacking: %w", err))
}

// elsewhere returns an address in a network that sends nothing else, of IPv4 and of IPv6 by turns.
func (s *scene) elsewhere() string {
	n := s.addresses.Add(1)
	if n%2 == 0 {
		return netip.AddrFrom4([4]byte{20, byte(n >> 8), byte(n), 7}).String()
	}
	return fmt.Sprintf("2a01:%x::7", n)
}

// beside returns an address of the attacker's network that the attacker does not have.
func (s *scene) beside() string { return fmt.Sprint(s.row.network, 200+s.addresses.Add(1)%50) }

// person returns an honest person with a token of their own.
func (s *scene) person(address string) *Person {
	return &Person{
		browser: browser{s.network, address},
		token:   rightPrefix + rand.Text(),
		client:  s.client,
		session: s.row.sessions,
	}
}

// outcome is the result of a visit.
type outcome struct {
	took time.Duration
	told bool // a page said when to try again
	err  error
}

// atOnce is the longest visit, of nine requests, that is not felt as a wait.
const atOnce = 3 * time.Second

// isAtOnce reports whether the person got in without any wait.
func (o outcome) isAtOnce() bool { return o.err == nil && !o.told && o.took < atOnce }

// isAnswered reports whether the person got in within their patience, or knows when to try again.
func (o outcome) isAnswered() bool { return o.err == nil || o.told }

// gather starts visits for a while, and returns when all people have got in or given up.
func gather(ctx context.Context, lasting, every time.Duration, person func(n int) *Person) (all []outcome) {
	until, ticks := time.Now().Add(lasting), time.NewTicker(every)
	defer ticks.Stop()
	var visits sync.WaitGroup
	var mu sync.Mutex
	for n := 0; time.Now().Before(until) && ctx.Err() == nil; n++ {
		p := person(n)
		visits.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			began := time.Now()
			err := p.Visit(ctx)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, outcome{time.Since(began), p.told, err})
		})
		select {
		case <-ticks.C:
		case <-ctx.Done():
		}
	}
	visits.Wait()
	return all
}
