package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// result has the measurements of a row.
type result struct {
	row       row
	elsewhere []outcome
	known     []outcome // in the attacker's network, with tokens that have worked before
	new       []outcome // in the attacker's network, with other tokens
	requests  float64   // of the attack per second
	guesses   int64     // wrong tokens that were checked
	lasted    time.Duration
	memory    float64 // MiB, how much the process has grown
	limited   string  // the limits that were reached
}

// rowLimit is how long a row may take besides the attack.
const rowLimit = 5 * time.Minute

// knownPeople is how many people connect before the attack.
const knownPeople = 15

func runRow(ctx context.Context, r row, o options, dir string) (found result, err error) {
	lasting := time.Duration(o.seconds) * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, rowLimit+lasting, errors.New("the row takes too long"))
	defer cancel()
	s, err := openScene(ctx, r, o, dir)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if r.prepare != nil {
		if err := r.prepare(ctx, s); err != nil {
			return found, fmt.Errorf("preparing: %w", err)
		}
	}
	var known []*Person
	for range knownPeople {
		p := s.person(s.elsewhere()) // at home; during the attack they are in the office
		if err := p.Visit(ctx); err != nil {
			return found, fmt.Errorf("before the attack: %w", err)
		}
		known = append(known, p)
	}
	found, err = underAttack(ctx, s, lasting, known)
	return found, errors.Join(err, s.failure)
}

// underAttack measures during the attack, which ends when the last honest person has got in or
// given up.
func underAttack(ctx context.Context, s *scene, lasting time.Duration, known []*Person) (found result, err error) {
	found.row = s.row
	before, err := s.site.memory(resident)
	if err != nil {
		return found, err
	}
	attacking, stop := context.WithCancel(ctx)
	attacked := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(attacked)
		s.row.launch(attacking, s)
	}()
	gathered := make(chan struct{}, 2)
	go func() {
		found.known = gather(ctx, lasting, time.Second, func(n int) *Person {
			again := *known[n%len(known)]
			again.address = s.beside()
			return &again
		})
		gathered <- struct{}{}
	}()
	go func() {
		found.new = gather(ctx, lasting, 3*time.Second, func(int) *Person {
			p := s.person(s.beside())
			p.waits = true
			return p
		})
		gathered <- struct{}{}
	}()
	found.elsewhere = gather(ctx, lasting, time.Second/3, func(int) *Person { return s.person(s.elsewhere()) })
	<-gathered
	<-gathered
	found.lasted = time.Since(began)
	found.requests = float64(s.attacked.Load()) / found.lasted.Seconds()
	found.guesses = s.verifier.guesses.Load()
	if found.limited, err = s.site.limits(ctx); err == nil {
		found.memory, err = s.site.memory(peak)
		found.memory -= before
	}
	stop()
	<-attacked
	return found, errors.Join(err, ctx.Err())
}

// share returns the percentage of people for whom is returns true.
func share(all []outcome, is func(outcome) bool) int {
	if len(all) == 0 {
		return 0
	}
	some := 0
	for _, o := range all {
		if is(o) {
			some++
		}
	}
	return 100 * some / len(all)
}

// check returns an error for each requirement that is not met.
func (found result) check(success int) (failures error) {
	for people, got := range map[string]int{
		"elsewhere got in at once":                      share(found.elsewhere, outcome.isAtOnce),
		"beside the attacker with known tokens got in":  share(found.known, outcome.isAtOnce),
		"beside the attacker with new ones were served": share(found.new, outcome.isAnswered),
	} {
		if got < success {
			failures = errors.Join(failures, fmt.Errorf("%s: %d%% of the people %s, want %d%%", found.row.name, got,
				people, success))
		}
	}
	most := int64(found.lasted.Seconds()) + 1 + freeGuesses + int64(found.lasted/freeAgain)
	if networks := found.row.networks(); found.guesses > most*networks {
		failures = errors.Join(failures, fmt.Errorf("%s: %d guesses were checked, want at most %d", found.row.name,
			found.guesses, most*networks))
	}
	return failures
}

// A network has ten wrong tokens before it takes turns, and gets one of them back after each while.
const (
	freeGuesses = 10
	freeAgain   = 30 * time.Second
)

// networks returns from how many networks the guesses come.
func (r row) networks() int64 {
	if r.name == "thousand" {
		return 1000
	}
	return 1
}

// summary returns the numbers, and the most frequent errors of people who did not get in.
func (found result) summary() string {
	reasons := map[string]int{}
	for _, o := range slices.Concat(found.elsewhere, found.known, found.new) {
		if o.err != nil {
			reasons[o.err.Error()]++
		}
	}
	text := fmt.Sprintf("%.1f requests/s, at once %d%% of %d elsewhere and %d%% of %d known, %d%% of %d new served, "+
		"%d guesses in %.0f s, %.0f MiB, limits: %s", found.requests,
		share(found.elsewhere, outcome.isAtOnce), len(found.elsewhere), share(found.known, outcome.isAtOnce),
		len(found.known), share(found.new, outcome.isAnswered), len(found.new), found.guesses,
		found.lasted.Seconds(), found.memory, found.limited)
	byCount := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int { return reasons[b] - reasons[a] })
	for _, reason := range byCount[:min(len(byCount), 3)] {
		text += fmt.Sprintf("\n    %d × %s", reasons[reason], reason)
	}
	return text
}
