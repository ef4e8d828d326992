package main

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// warmUp is long enough to use up the guesses that need no work, and to end the first wait of
// browsers without script.
const warmUp = 25 * time.Second

// guessRows are the attacks that measure guesses: attackers who ignore the demands of pages, who
// wait like browsers without script, and who do the work on one core.
func guessRows() (all []row) {
	origins := []struct {
		name, title string
		address     func() func() string
	}{
		{"address", "one address", func() func() string { return func() string { return "203.0.113.1" } }},
		{"prefix64", "an IPv6 /64", freshHosts},
		{"prefix48", "an IPv6 /48", freshSubnets},
		{"thousand", "1,000 IPv4 addresses", thousandAddresses},
	}
	kinds := []struct {
		name, title string
		attack      func(ctx context.Context, s *scene, address func() string)
	}{{"ignores", "ignores the demand for work", ignore}, {"waits", "waits", wait},
		{"works", "does the work on one core", work}}
	for _, k := range kinds {
		for _, o := range origins {
			all = append(all, row{
				name:     o.name + "-" + k.name,
				attacker: o.title + ", " + k.title,
				warmUp:   warmUp,
				during:   working(fromElsewhere),
				attack:   func(ctx context.Context, s *scene) { k.attack(ctx, s, o.address()) },
			})
		}
	}
	return all
}

func ignore(ctx context.Context, s *scene, address func() string) { guessFrom(address)(ctx, s) }

// wait guesses 600 times a second, more often than a thousand addresses have turns, and retries
// when the page allows it.
func wait(ctx context.Context, s *scene, address func() string) {
	g := &guesser{scene: s, address: address, answers: func(ctx context.Context, d demand) url.Values {
		if d.wait == 0 || pause(ctx, d.wait) != nil {
			return nil
		}
		return d.values
	}}
	pace(ctx, 600, 20_000, g.guess)
}

// work computes one proof at a time.
func work(ctx context.Context, s *scene, address func() string) {
	var core sync.Mutex
	g := &guesser{scene: s, address: address, answers: func(_ context.Context, d demand) url.Values {
		core.Lock()
		defer core.Unlock()
		return d.solved()
	}}
	flood(ctx, floodWidth, g.guess)
}

// freshHosts returns another address of one /64 each time.
func freshHosts() func() string {
	var n atomic.Uint64
	return func() string { return fmt.Sprintf("2001:db8:bad::%x:%x", n.Add(1)>>16, n.Load()&0xffff) }
}

// thousandAddresses returns one of a thousand, each in a /24 of its own.
func thousandAddresses() func() string {
	var n atomic.Uint64
	return func() string { i := n.Add(1) % 1000; return fmt.Sprintf("45.%d.%d.1", i/250, i%250) }
}
