package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ask opens the consent page for a client, for which the site has to fetch its document.
func (s *scene) ask(ctx context.Context, address, client string) {
	p := Person{browser: s.attack(address), client: client}
	_, _ = p.open(ctx, p.authorization(rand.Text()+rand.Text()))
}

// addHosts starts hosts of the attacker and returns their origins.
func (s *scene) addHosts(count int) (origins []string) {
	for range count {
		if origin, err := s.hosts.add(); err == nil {
			origins = append(origins, origin)
		}
	}
	return origins
}

// fetchSlowly requests slow documents of four hosts, from four addresses for each replica.
func fetchSlowly(ctx context.Context, s *scene) {
	origins, replicas := s.addHosts(4), int64(len(s.site.replicas))
	var n atomic.Int64
	pace(ctx, 2.8*float64(replicas), 200, func(ctx context.Context) {
		i := n.Add(1)
		s.ask(ctx, fmt.Sprintf("203.0.113.%d", 1+i%(4*replicas)),
			fmt.Sprintf("%s/slow/%s", origins[i/replicas%4], rand.Text()))
	})
}

const manyDocuments = 1100

// fetchMany makes the site fetch valid documents of forty hosts, from a hundred addresses.
func fetchMany(ctx context.Context, s *scene) error {
	origins := s.addHosts(40)
	places, fetching := make(chan struct{}, floodWidth), sync.WaitGroup{}
	for i := range manyDocuments {
		places <- struct{}{}
		fetching.Go(func() {
			s.ask(ctx, fmt.Sprintf("192.0.%d.9", i%100), fmt.Sprintf("%s/client/%s", origins[i%40], rand.Text()))
			<-places
		})
	}
	fetching.Wait()
	s.attacked.Store(0) // these requests are not part of the measured attack
	return ctx.Err()
}

// manyWithSigningApps are enough people that each refreshes about once during the attack.
func manyWithSigningApps() crowd {
	c := ordinary(withSigningApp)
	c.size = 3
	return c
}

// withSigningApp returns a person with an app of their own that signs, and keeps them for the
// attack.
func withSigningApp(s *scene, n int) (p *Person, err error) {
	p, _ = fromElsewhere(s, n)
	p.client, err = s.newClient("signing")
	p.signs = s.hosts.sign
	s.keep(p)
	return p, err
}

// refreshing are the kept people, by turns. Each refreshes and calls the MCP server.
func refreshing() crowd {
	c := ordinary(func(s *scene, n int) (*Person, error) {
		if len(s.kept) == 0 {
			return nil, errors.New("no person with an app that signs came before the attack")
		}
		p := *s.kept[n%len(s.kept)]
		return &p, nil
	})
	c.visit = func(p *Person, ctx context.Context) error {
		return errors.Join(p.Refresh(ctx), p.Call(ctx))
	}
	return c
}

// untilStale waits until the documents that were fetched before have expired.
func untilStale(ctx context.Context, _ *scene) error { return pause(ctx, time.Minute) }

// shareHost starts one host for all documents of the honest app.
func shareHost(_ context.Context, s *scene) (err error) {
	s.client, err = s.newClient("brief")
	return err
}

// ownDocument is the n-th document of the app.
func ownDocument(s *scene, n int) string { return fmt.Sprintf("%s-%d", s.client, n) }

// withOwnDocument returns a person whose app has the n-th document.
func withOwnDocument(s *scene, n int) (*Person, error) {
	p, err := fromElsewhere(s, n)
	p.client = ownDocument(s, n)
	s.keep(p)
	return p, err
}

// withKnownDocument returns a person whose app has a document that was fetched before the attack.
func withKnownDocument(s *scene, n int) (*Person, error) {
	p, err := fromElsewhere(s, n)
	p.client = ownDocument(s, n%len(s.kept))
	return p, err
}

// fetchMadeUp asks for paths that the app's host does not have, from one address and from many.
func fetchMadeUp(ctx context.Context, s *scene) {
	subnet, one := freshSubnets(), atomic.Int64{}
	flood(ctx, floodWidth, func(ctx context.Context) {
		address := "203.0.113.1"
		if one.Add(1)%2 == 0 {
			address = subnet()
		}
		s.ask(ctx, address, hostOf(s.client)+"/made-up/"+rand.Text())
		_ = pause(ctx, 10*time.Millisecond) // a refusal is so quick that the attack would take all of the processor
	})
}

// hostOf returns the origin of a client.
func hostOf(client string) string {
	origin, _, _ := strings.Cut(strings.TrimPrefix(client, "https://"), "/")
	return "https://" + origin
}
