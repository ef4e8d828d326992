package main

import (
	"fmt"
	"os"
	"slices"
)

// results are the samples of a line, round by round and server by server.
type results struct {
	line   line
	rounds []map[string]sample
}

// run measures a line: each round starts fresh processes, and every second round reverses the order
// of the servers.
func (b *bench) run(l line) (results, error) {
	r := results{line: l}
	rounds := b.rounds
	if l.once {
		rounds = 1
	}
	for i := range rounds {
		order := slices.Clone(b.only(l.servers))
		if i%2 == 1 {
			slices.Reverse(order)
		}
		measure := l.measure
		if measure == nil {
			measure = (*bench).underLoad
		}
		round, err := measure(b, l, order)
		if err != nil {
			return r, err
		}
		for _, server := range order {
			fmt.Fprintf(os.Stderr, "%s, round %d, %-18s %s\n", l.name, i+1, server, round[server])
		}
		r.rounds = append(r.rounds, round)
	}
	return r, nil
}

// oneByOne measures each server of a round by itself.
func oneByOne(measure func(*bench, line, string) (sample, error)) func(*bench, line,
	[]string) (map[string]sample, error) {
	return func(b *bench, l line, servers []string) (map[string]sample, error) {
		round := map[string]sample{}
		for _, server := range servers {
			s, err := measure(b, l, server)
			if err != nil {
				return nil, fmt.Errorf("%s on %s: %w", l.name, server, err)
			}
			round[server] = s
		}
		return round, nil
	}
}

// String lists the metrics in a fixed order.
func (s sample) String() (text string) {
	for _, m := range []metric{rate, cpuTime, median, tail, farTail, duration, idleMemory, usedMemory, filePages,
		perToken, perSession, busy} {
		if value, has := s[m]; has {
			text += fmt.Sprintf("%s %s  ", short(value), m)
		}
	}
	return text
}

// short formats a number with three significant digits.
func short(value float64) string {
	if value >= 1000 || value <= -1000 {
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.3g", value)
}

// spread is the median and the range of the rounds.
type spread struct{ median, least, most float64 }

func spreadOf(values []float64) spread {
	slices.Sort(values)
	middle := len(values) / 2
	median := values[middle]
	if len(values)%2 == 0 {
		median = (values[middle-1] + median) / 2
	}
	return spread{median, values[0], values[len(values)-1]}
}

func (r results) compare(c comparison) spread {
	values := make([]float64, 0, len(r.rounds))
	for _, round := range r.rounds {
		values = append(values, c.of(round))
	}
	return spreadOf(values)
}

// median returns the median of a server's rounds.
func (r results) median(server string, m metric) (value float64, measured bool) {
	var values []float64
	for _, round := range r.rounds {
		if one, has := round[server][m]; has {
			values = append(values, one)
		}
	}
	if len(values) == 0 {
		return 0, false
	}
	return spreadOf(values).median, true
}
