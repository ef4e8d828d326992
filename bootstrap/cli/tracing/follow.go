package tracing

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// pollInterval is the interval of queries for new steps.
const pollInterval = 500 * time.Millisecond

// follower prints new steps of the trace.
type follower struct {
	log  trace.Log
	id   string // of the connection to follow; "" for all new steps
	json bool
	out  term.Terminal

	doctor  bool            // print the steps of doctor, too
	doctors map[string]bool // attempts of doctor
	hidden  int             // steps of doctor that were not printed

	last    int64          // number of the last step that was read
	steps   []trace.Step   // candidates for the followed connection
	printed map[int64]bool // numbers of the steps of the connection that were printed
}

// run prints new steps until ctx ends.
func (f *follower) run(ctx context.Context) error {
	steps, err := f.begin(ctx)
	if err != nil {
		return err
	}
	for {
		if err := f.print(steps); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			if f.hidden > 0 {
				f.out.Printf("%d steps of doctor were hidden\n", f.hidden)
			}
			return nil
		case <-time.After(pollInterval):
		}
		if steps, err = f.read(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// begin reads the existing steps. It returns those of the connection to follow, which must exist,
// and none otherwise.
func (f *follower) begin(ctx context.Context) (steps []trace.Step, err error) {
	if steps, err = f.read(ctx); err != nil {
		return nil, err
	}
	f.doctors = map[string]bool{}
	if f.id == "" {
		f.withoutDoctor(steps) // finds its attempts
		f.hidden, steps = 0, nil
	} else {
		f.steps = steps
		followed, err := f.connection()
		if err != nil {
			return nil, err
		}
		// Its id may still change, but not its first request.
		f.id, f.steps = cmp.Or(followed.Steps[0].Request, followed.ID), nil
	}
	if !f.json {
		f.out.Printf("following new steps; press Ctrl-C to stop\n")
	}
	return steps, nil
}

// read returns the steps since the last call.
func (f *follower) read(ctx context.Context) ([]trace.Step, error) {
	added, err := f.log.Steps(ctx, f.last)
	if err == nil && len(added) > 0 {
		f.last = added[len(added)-1].Number
	}
	return added, err
}

func (f *follower) connection() (trace.Connection, error) {
	return findConnection(trace.Assemble(f.steps, time.Now()), f.id)
}

func (f *follower) print(steps []trace.Step) error {
	if f.id != "" && len(steps) > 0 {
		f.steps = append(f.steps, steps...)
		f.steps = f.steps[max(0, len(f.steps)-2*trace.Capacity):] // twice the number that the store keeps
		followed, err := f.connection()
		if err != nil {
			return err
		}
		steps = f.unprinted(followed.Steps)
	}
	if f.id == "" && !f.doctor && !f.json {
		hidden := f.hidden
		if steps = f.withoutDoctor(steps); hidden == 0 && f.hidden > 0 {
			f.out.Printf("steps of doctor are hidden: --doctor shows them\n")
		}
	}
	for _, step := range steps {
		if err := f.printStep(step); err != nil {
			return err
		}
	}
	return nil
}

// withoutDoctor returns the steps of clients, and counts those of doctor. The end of an attempt has
// no user agent.
func (f *follower) withoutDoctor(steps []trace.Step) (clients []trace.Step) {
	for _, step := range steps {
		if step.IsDoctor() && step.Attempt != "" {
			f.doctors[step.Attempt] = true
		}
		if step.IsDoctor() || step.Agent == "" && f.doctors[step.Attempt] {
			f.hidden++
			continue
		}
		clients = append(clients, step)
	}
	return clients
}

// unprinted returns the steps that were not printed yet. A later step can add earlier ones to the
// connection.
func (f *follower) unprinted(steps []trace.Step) (unprinted []trace.Step) {
	if f.printed == nil {
		f.printed = map[int64]bool{}
	}
	for _, step := range steps {
		if !f.printed[step.Number] {
			f.printed[step.Number] = true
			unprinted = append(unprinted, step)
		}
	}
	return unprinted
}

func (f *follower) printStep(step trace.Step) error {
	if !f.json {
		f.out.Printf("%s  %-8s  %s\n", term.Time(step.At), term.OrDash(oauth.ShortID(step.Attempt)),
			lineOf(f.out, step))
		return nil
	}
	if err := json.NewEncoder(f.out.Out).Encode(step); err != nil {
		return fmt.Errorf("printing a step: %w", err)
	}
	return nil
}
