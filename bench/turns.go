package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/bench/load"
)

// turnLength is short because other processes change the speed of the machine from second to
// second.
const turnLength = 250 * time.Millisecond

// turn is the time that one server is under load.
type turn struct {
	warmup, length time.Duration
	counts         bool
}

// turns returns the turns of each server in a round. Lines with a fixed rate or with tokens that
// run out have one.
func (b *bench) turns(l line) []turn {
	switch {
	case l.usesUp:
		return []turn{{counts: true}}
	case l.rate > 0:
		return []turn{{warmup: b.warmup, length: b.length, counts: true}}
	}
	short := turn{length: turnLength, counts: true}
	return append([]turn{{length: b.warmup}}, slices.Repeat([]turn{short}, int((b.length+turnLength-1)/turnLength))...)
}

// contestant is a running server of a line with its measurements so far.
type contestant struct {
	server  string
	process *process
	people  []*person
	took    load.Latencies
	length  time.Duration
	began   time.Duration // CPU time used before the measurement
	looks   int64         // polls for responses, and how many of them were empty
	empty   int64
}

// underLoad measures servers in turn.
func (b *bench) underLoad(l line, servers []string) (round map[string]sample, err error) {
	var all []*contestant
	defer func() {
		for _, c := range all {
			dismiss(c.people)
			err = errors.Join(err, c.process.stop())
		}
	}()
	for _, server := range servers {
		c := &contestant{server: server}
		if c.process, err = b.start(server); err != nil {
			return nil, err
		}
		all = append(all, c)
		if err := b.ready(c, l); err != nil {
			return nil, fmt.Errorf("preparing %s for %s: %w", server, l.name, err)
		}
	}
	for _, t := range b.turns(l) {
		for _, c := range all {
			if err := c.take(l, t); err != nil {
				return nil, fmt.Errorf("%s on %s: %w", l.name, c.server, err)
			}
		}
		slices.Reverse(all)
	}
	round = map[string]sample{}
	for _, c := range all {
		round[c.server] = c.shown()
	}
	return round, nil
}

// ready connects and prepares the clients.
func (b *bench) ready(c *contestant, l line) (err error) {
	c.people, err = b.gather(c.process, c.server, clients)
	if err == nil {
		err = together(c.people, scenarios[l.scenario].prepare)
	}
	if err == nil && b.profile != "" && strings.HasPrefix(c.server, "pasteport") {
		err = c.process.tell("profile " + filepath.Join(b.profile, l.file()+"-"+c.server))
	}
	return err
}

// take puts the server under load for one turn. CPU that the server uses between its turns counts
// too, because it is work that its responses left behind.
func (c *contestant) take(l line, t turn) error {
	do, looks, empty := scenarios[l.scenario].do, int64(0), int64(0)
	loop := load.Loop{
		Clients: len(c.people),
		Warmup:  t.warmup,
		Length:  t.length,
		Rate:    l.rate,
		Mark: func() {
			if len(c.took) == 0 {
				c.began = c.process.cpu()
			}
			looks, empty = looksOf(c.people)
		},
	}
	took, length, err := loop.Run(func(client int) error { return do(c.people[client]) })
	if err == nil && len(took) == 0 {
		err = errors.New("the server answered no request")
	}
	if err != nil || !t.counts {
		return err
	}
	c.took, c.length = append(c.took, took...), c.length+length
	all, vain := looksOf(c.people)
	c.looks, c.empty = c.looks+all-looks, c.empty+vain-empty
	return nil
}

func looksOf(people []*person) (all, empty int64) {
	for _, p := range people {
		looks, vain := p.Looks()
		all, empty = all+looks, empty+vain
	}
	return all, empty
}

func (c *contestant) shown() sample {
	slices.Sort(c.took)
	count := float64(len(c.took))
	inMS := func(q float64) float64 { return c.took.Quantile(q).Seconds() * 1e3 }
	return sample{
		rate:    count / c.length.Seconds(),
		cpuTime: float64((c.process.cpu() - c.began).Microseconds()) / count,
		median:  inMS(.5),
		tail:    inMS(.99),
		farTail: inMS(.999),
		busy:    1 - float64(c.empty)/float64(c.looks),
	}
}
