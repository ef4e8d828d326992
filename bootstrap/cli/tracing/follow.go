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

// followEvery is how often a live view reads new steps.
const followEvery = 500 * time.Millisecond

// following is a live view of the trace.
type following struct {
	log  trace.Log
	id   string // connection to follow; "" for every step from now on
	json bool
	out  term.Terminal

	last    int64          // number of the last step that was read
	steps   []trace.Step   // candidates for the followed connection
	printed map[int64]bool // numbers of the steps of the connection that were printed
}

// run prints steps as they happen, until ctx ends.
func (f *following) run(ctx context.Context) error {
	news, err := f.begin(ctx)
	if err != nil {
		return err
	}
	for {
		if err := f.print(news); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followEvery):
		}
		if news, err = f.read(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// begin reads the existing steps. It returns them for a followed connection, which must exist, and skips them otherwise.
func (f *following) begin(ctx context.Context) (news []trace.Step, err error) {
	if news, err = f.read(ctx); err != nil {
		return nil, err
	}
	if f.id == "" {
		news = nil
	} else {
		f.steps = news
		followed, err := f.connection()
		if err != nil {
			return nil, err
		}
		f.id, f.steps = cmp.Or(followed.Steps[0].Request, followed.ID), nil // the id may still change, its first request does not
	}
	if !f.json {
		f.out.Printf("following; Ctrl-C ends it\n")
	}
	return news, nil
}

// read returns the steps since the last call.
func (f *following) read(ctx context.Context) ([]trace.Step, error) {
	added, err := f.log.Steps(ctx, f.last)
	if err == nil && len(added) > 0 {
		f.last = added[len(added)-1].Number
	}
	return added, err
}

func (f *following) connection() (trace.Connection, error) {
	return findConnection(trace.Assemble(f.steps, time.Now()), f.id)
}

func (f *following) print(news []trace.Step) error {
	if f.id != "" && len(news) > 0 {
		f.steps = append(f.steps, news...)
		f.steps = f.steps[max(0, len(f.steps)-2*trace.Capacity):] // twice the number that the store keeps
		followed, err := f.connection()
		if err != nil {
			return err
		}
		news = f.unprinted(followed.Steps)
	}
	for _, step := range news {
		if err := f.printStep(step); err != nil {
			return err
		}
	}
	return nil
}

// unprinted returns the steps that were not printed yet. A later step can add earlier ones to the connection.
func (f *following) unprinted(steps []trace.Step) (news []trace.Step) {
	if f.printed == nil {
		f.printed = map[int64]bool{}
	}
	for _, step := range steps {
		if !f.printed[step.Number] {
			f.printed[step.Number] = true
			news = append(news, step)
		}
	}
	return news
}

func (f *following) printStep(step trace.Step) error {
	if !f.json {
		f.out.Printf("%s  %-8s  %s\n", term.Time(step.At), term.OrDash(oauth.ShortID(step.Attempt)), lineOf(f.out, step))
		return nil
	}
	if err := json.NewEncoder(f.out.Out).Encode(step); err != nil {
		return fmt.Errorf("printing a step: %w", err)
	}
	return nil
}
