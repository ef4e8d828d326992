package main

import (
	"context"
	"fmt"
	"sync/atomic"
)

// guessRows are attackers who only want to guess: those who ignore what pages demand, and those who do the work on one core.
func guessRows() []row {
	origins := []struct {
		name, title string
		address     func() func() string
	}{
		{"address", "one address", func() func() string { return func() string { return "203.0.113.1" } }},
		{"prefix64", "an IPv6 /64", freshHosts},
		{"prefix48", "an IPv6 /48", freshSubnets},
		{"thousand", "1,000 IPv4 addresses", thousandAddresses},
	}
	var all []row
	for _, works := range []bool{false, true} {
		for _, o := range origins {
			r := row{name: o.name + "-ignores", attacker: o.title + ", no work", before: ordinary(fromElsewhere), during: ordinary(fromElsewhere)}
			if works {
				r.name, r.attacker = o.name+"-works", o.title+", the work of one core"
			}
			r.attack = func(ctx context.Context, s *scene) {
				g := &guesser{scene: s, address: o.address(), works: works}
				flood(ctx, floodWidth, g.guess)
			}
			all = append(all, r)
		}
	}
	return all
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
