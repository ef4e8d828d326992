package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pasteport/pasteport/adapters/diagnosis"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/domain/connection"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	pollInterval = 500 * time.Millisecond
	overlap      = time.Minute // of two queries, because processes write their steps late
)

// follower prints the new steps of the trace.
type follower struct {
	reader *traceReader
	log    connection.Log
	id     string // of the attempt to follow; "" for all
	out    term.Terminal

	newest time.Time                    // step
	seen   map[string][]connection.Step // by attempt
	hidden int                          // steps of doctor
}

// run prints new steps until ctx ends, after those that the attempt to follow has already.
func (f *follower) run(ctx context.Context) error {
	all, err := diagnosis.Read(ctx, f.log, time.Now())
	if err != nil {
		return err
	}
	f.seen = map[string][]connection.Step{}
	if f.id != "" {
		followed, err := f.reader.find(all, f.id)
		if err != nil {
			return err
		}
		f.id, all = followed.ID, nil
	}
	for _, a := range all {
		f.seen[a.ID], f.newest = a.Steps, all[0].At
	}
	if !f.reader.asJSON {
		f.out.Printf("following new steps; press Ctrl-C to stop\n")
	}
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for ctx.Err() == nil {
		if err := f.printNew(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-poll.C:
		}
	}
	if f.hidden > 0 {
		f.out.Printf("hidden: %s of doctor\n", term.Count(f.hidden, "step"))
	}
	return nil
}

func (f *follower) printNew(ctx context.Context) error {
	changed, err := f.log.Attempts(ctx, f.newest.Add(-overlap))
	if err != nil {
		return err
	}
	for _, a := range slices.Backward(changed) {
		before := f.seen[a.ID]
		f.seen[a.ID], f.newest = a.Steps, a.At
		for _, step := range a.Steps {
			if slices.Contains(before, step) || f.id != "" && a.ID != f.id || f.hides(a) {
				continue
			}
			if err := f.print(a.ID, step); err != nil {
				return err
			}
		}
	}
	return nil
}

// hides counts a step of doctor that is not printed.
func (f *follower) hides(a connection.Attempt) bool {
	if f.id != "" || f.reader.doctor || f.reader.asJSON || !connection.IsDoctor(a.Agent) {
		return false
	}
	if f.hidden++; f.hidden == 1 {
		f.out.Printf("steps of doctor are hidden: --doctor shows them\n")
	}
	return true
}

func (f *follower) print(id string, step connection.Step) error {
	if !f.reader.asJSON {
		f.out.Printf("%s  %-8s  %s\n", term.Time(step.At), oauth.ShortID(id), lineOf(f.out, step))
		return nil
	}
	line := struct {
		Attempt string `json:"attempt"`
		connection.Step
	}{id, step}
	if err := json.NewEncoder(f.out.Out).Encode(line); err != nil {
		return fmt.Errorf("printing a step: %w", err)
	}
	return nil
}
