package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// result has the measurements of a row.
type result struct {
	row            row
	store          string
	before, during []outcome
	rate           float64 // requests of the attack per second
	early, guesses int64   // wrong tokens that were checked, during and after the warm-up
	lasted         time.Duration
	memory, peak   float64 // MiB of the largest replica
	limited        string  // the increases of pasteport_limits_total during the attack
	note           string
}

// rowLimit is how long a row may take besides the attack.
const rowLimit = 10 * time.Minute

func runRow(ctx context.Context, r row, on *store, o options, dir string) (found result, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, rowLimit+time.Duration(o.seconds)*time.Second,
		errors.New("the row takes too long"))
	defer cancel()
	s, err := openScene(ctx, r, on, o, dir)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	lasting := time.Duration(o.seconds) * time.Second
	found = result{row: r, store: on.name}
	if r.prepare != nil {
		if err := r.prepare(ctx, s); err != nil {
			return found, fmt.Errorf("preparing: %w", err)
		}
	}
	if r.before.size > 0 {
		if found.before, err = s.gather(ctx, lasting/3, r.before); err != nil {
			return found, err
		}
	}
	if r.between != nil {
		if err := r.between(ctx, s); err != nil {
			return found, fmt.Errorf("between: %w", err)
		}
	}
	if err := found.underAttack(ctx, s, lasting); err != nil {
		return found, err
	}
	if r.note != nil {
		found.note, err = r.note(ctx, s)
	}
	return found, err
}

// underAttack measures during the attack, which ends when the last honest person has connected or
// given up.
func (found *result) underAttack(ctx context.Context, s *scene, lasting time.Duration) (err error) {
	if found.memory, err = s.site.memory(resident); err != nil {
		return err
	}
	limitedBefore, err := s.site.limits(ctx)
	if err != nil {
		return err
	}
	attacking, stop := context.WithCancel(ctx)
	attacked := make(chan struct{})
	go func() {
		defer close(attacked)
		if s.row.attack != nil {
			s.row.attack(attacking, s)
		}
	}()
	guessed := s.judged()
	err = pause(ctx, s.row.warmUp)
	found.early = s.judged() - guessed
	guessed, sent, began := s.judged(), s.attacked.Load(), time.Now()
	if err == nil {
		found.during, err = s.gather(ctx, lasting, s.row.during)
	}
	found.lasted = time.Since(began)
	found.rate = float64(s.attacked.Load()-sent) / found.lasted.Seconds()
	found.guesses = s.judged() - guessed
	stop()
	<-attacked
	if err != nil {
		return err
	}
	if found.peak, err = s.site.memory(peak); err != nil {
		return err
	}
	limited, err := s.site.limits(ctx)
	found.limited = difference(limitedBefore, limited)
	return err
}

func difference(before, after map[string]float64) string {
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if more := after[name] - before[name]; more > 0 {
			changed = append(changed, fmt.Sprintf("%s %.0f", name, more))
		}
	}
	return cmp.Or(strings.Join(changed, ", "), "-")
}

// guessesPerHour returns an upper bound of the guesses in an hour. Guesses that needed no work
// during the warm-up need none again every five minutes.
func (found result) guessesPerHour() float64 {
	return float64(found.early)*12 + float64(found.guesses)*float64(time.Hour)/float64(found.lasted)
}

// check returns an error for each requirement that is not met.
func (found result) check(o options) (misses error) {
	at := found.row.name + " on " + found.store
	for _, p := range []struct {
		all   []outcome
		least int
		who   string
	}{{found.people(false), o.minSuccess, "honest people"},
		{found.people(true), o.minWithout, "honest people without JavaScript"}} {
		if got := success(p.all); len(p.all) > 0 && got < float64(p.least) {
			misses = errors.Join(misses,
				fmt.Errorf("%s: %.0f%% of %d %s connect; the minimum is %d%%", at, got, len(p.all), p.who, p.least))
		}
	}
	if got := found.guessesPerHour(); got > float64(o.maxGuesses) {
		misses = errors.Join(misses,
			fmt.Errorf("%s: %.0f guesses per hour are checked; the maximum is %d", at, got, o.maxGuesses))
	}
	return misses
}

// people returns the outcomes of those who came during the attack, with or without script.
func (found result) people(noScript bool) (some []outcome) {
	for _, o := range found.during {
		if o.noScript == noScript {
			some = append(some, o)
		}
	}
	return some
}

// success returns the percentage of people who connected.
func success(all []outcome) float64 {
	good := 0
	for _, o := range all {
		if o.err == nil {
			good++
		}
	}
	return 100 * float64(good) / float64(max(len(all), 1))
}

// retried returns how many connected after a retry.
func retried(all []outcome) (count int) {
	for _, o := range all {
		if o.err == nil && o.retried {
			count++
		}
	}
	return count
}

// quantile returns a quantile of the times of people who connected, in milliseconds.
func quantile(all []outcome, part float64) string {
	var took []time.Duration
	for _, o := range all {
		if o.err == nil {
			took = append(took, o.took)
		}
	}
	if len(took) == 0 {
		return "-"
	}
	slices.Sort(took)
	return fmt.Sprint(took[min(int(part*float64(len(took))), len(took)-1)].Milliseconds())
}

// summary returns the numbers, and the most frequent errors of people who did not connect.
func (found result) summary() string {
	reasons := map[string]int{}
	for _, o := range slices.Concat(found.before, found.during) {
		if o.err != nil {
			reasons[o.err.Error()]++
		}
	}
	able, unable := found.people(false), found.people(true)
	text := fmt.Sprintf("%.1f requests/s, %.0f%% of %d got in (%d after a retry), %.0f%% of %d without JavaScript, "+
		"p99 %s ms, before %s ms, %.0f guesses per hour, limits: %s",
		found.rate, success(able), len(able), retried(able), success(unable), len(unable),
		quantile(able, 0.99), quantile(found.before, 0.99), found.guessesPerHour(), found.limited)
	byCount := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int { return reasons[b] - reasons[a] })
	for _, reason := range byCount[:min(len(byCount), 3)] {
		text += fmt.Sprintf("\n    %d × %s", reasons[reason], reason)
	}
	return text
}
