package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

const (
	tolerated = .75 // share of the committed ratio that still passes
	attempts  = 3   // measurements of a line before it fails
)

// compareWithCommitted fails if a ratio has fallen. It repeats a fallen line, because noise can
// lower a ratio, and uses the best attempt.
func (b *bench) compareWithCommitted(measured []results) error {
	committed, err := readFigures(filepath.Dir(b.out))
	if err != nil {
		return fmt.Errorf("reading the committed figures: %w", err)
	}
	var fallen error
	for _, r := range measured {
		best := map[string]float64{}
		r.keepBest(best)
		for attempt := 2; len(falls(r, best, committed)) > 0 && attempt <= attempts; attempt++ {
			fmt.Printf("%s: %v; measuring again (attempt %d of %d, the best counts)\n", r.line.name,
				falls(r, best, committed), attempt, attempts)
			again, err := b.run(r.line)
			if err != nil {
				return err
			}
			again.keepBest(best)
		}
		for _, c := range r.compared() {
			fmt.Printf("%s: %s is %s, committed %s\n", r.line.name, c.name(), short(best[c.name()]),
				short(committed[r.line.name][c.name()]))
		}
		for _, fall := range falls(r, best, committed) {
			fallen = errors.Join(fallen, fmt.Errorf("%s: %s in the best of %d attempts", r.line.name, fall, attempts))
		}
	}
	return fallen
}

// keepBest replaces each ratio in best by a better one.
func (r results) keepBest(best map[string]float64) {
	for _, c := range r.compared() {
		value := r.compare(c).median
		if before, has := best[c.name()]; !has || c.meets(value, before) {
			best[c.name()] = value
		}
	}
}

// falls describes the ratios that are more than a quarter worse than committed, and those without a
// committed figure.
func falls(r results, best map[string]float64, committed figures) (found []string) {
	for _, c := range r.compared() {
		was, known := committed[r.line.name][c.name()]
		switch {
		case c.reach, c.disk:
		case !known:
			found = append(found, c.name()+" has no committed figure")
		case !c.meets(best[c.name()], c.least(was)):
			found = append(found, fmt.Sprintf("%s is %s, and was %s", c.name(), short(best[c.name()]), short(was)))
		}
	}
	slices.Sort(found)
	return found
}

// least returns the worst value that passes for a committed one.
func (c comparison) least(committed float64) float64 {
	if c.moreIsBetter() {
		return committed * tolerated
	}
	return committed / tolerated
}
