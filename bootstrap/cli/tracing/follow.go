package tracing

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pasteport/pasteport/adapters/diagnosis"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/domain/connection"
	"github.com/pasteport/pasteport/domain/oauth"
)

// pollInterval is the interval of queries for new steps.
const pollInterval = 500 * time.Millisecond

// follower prints new steps of the trace.
type follower struct {
	log  connection.Log
	id   string // of the connection to follow; "" for all new steps
	json bool
	out  term.Terminal

	doctor  bool            // print the steps of doctor, too
	doctors map[string]bool // attempts of doctor
	hidden  int             // steps of doctor that were not printed

	last    int64          // number of the last step that was read
	printed map[int64]bool // numbers of the steps of the followed connection that were printed before
}

// run prints new steps until ctx ends.
func (f *follower) run(ctx context.Context) error {
	steps, err := f.begin(ctx)
	for err == nil {
		if err := f.print(steps); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			if f.hidden > 0 {
				f.out.Printf("hidden: %s of doctor\n", term.Count(f.hidden, "step"))
			}
			return nil
		case <-time.After(pollInterval):
		}
		if steps, err = f.next(ctx); ctx.Err() != nil {
			steps, err = nil, nil
		}
	}
	return err
}

// begin reads the existing steps. It returns those of the connection to follow, which must exist,
// and none otherwise.
func (f *follower) begin(ctx context.Context) ([]connection.Step, error) {
	steps, err := f.log.Steps(ctx, 0)
	if err != nil {
		return nil, err
	}
	f.doctors, f.printed = map[string]bool{}, map[int64]bool{}
	if len(steps) > 0 {
		f.last = steps[len(steps)-1].Number
	}
	if f.id == "" {
		f.withoutDoctor(steps) // finds its attempts
		f.hidden, steps = 0, nil
	} else if steps, err = f.followed(steps); err != nil {
		return nil, err
	}
	if !f.json {
		f.out.Printf("following new steps; press Ctrl-C to stop\n")
	}
	return steps, nil
}

// followed returns the steps of the connection that were not printed yet.
func (f *follower) followed(all []connection.Step) (steps []connection.Step, err error) {
	followed, err := findConnection(diagnosis.Assemble(all, time.Now()), f.id)
	if err != nil {
		return nil, err
	}
	f.id = cmp.Or(followed.Steps[0].Request, followed.ID) // unlike its id, the request never changes
	for _, step := range followed.Steps {
		if !f.printed[step.Number] {
			f.printed[step.Number] = true
			steps = append(steps, step)
		}
	}
	return steps, nil
}

// next returns the steps to print since the last call. Each new step may be the next one of the
// followed connection, or add earlier ones to it.
func (f *follower) next(ctx context.Context) (steps []connection.Step, err error) {
	added, err := f.log.Steps(ctx, f.last)
	if err != nil || len(added) == 0 {
		return nil, err
	}
	f.last = added[len(added)-1].Number
	if f.id == "" {
		return added, nil
	}
	all, err := f.log.Steps(ctx, 0)
	if err != nil {
		return nil, err
	}
	return f.followed(all)
}

func (f *follower) print(steps []connection.Step) error {
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
func (f *follower) withoutDoctor(steps []connection.Step) (clients []connection.Step) {
	for _, step := range steps {
		if diagnosis.IsDoctor(step) && step.Attempt != "" {
			f.doctors[step.Attempt] = true
		}
		if diagnosis.IsDoctor(step) || step.Agent == "" && f.doctors[step.Attempt] {
			f.hidden++
			continue
		}
		clients = append(clients, step)
	}
	return clients
}

func (f *follower) printStep(step connection.Step) error {
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
