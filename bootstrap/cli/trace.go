package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/diagnosis"
	"github.com/pasteport/pasteport/domain/oauth"
)

// traceReader reads the attempts to connect for the commands connections and trace.
type traceReader struct {
	config       *service.Config
	asJSON       bool
	unfinished   bool
	doctor       bool // also attempts of pasteport doctor
	doctorHidden int  // attempts that read has left out
}

func newConnections(out io.Writer) *cobra.Command {
	r := traceReader{config: service.DefaultConfig()}
	command := &cobra.Command{
		Use:   "connections",
		Short: "List the attempts of clients to connect",
		Args:  term.NoArguments,
		Long: "List the attempts of clients to connect in the last seven days, the newest first: the client, the " +
			"state, and the problem of those that\n" +
			"did not succeed. The command reads the data folder, also while the service runs. Attempts of `pasteport " +
			"doctor` are hidden, except\n" +
			"with --doctor; JSON has all, with \"doctor\": true.",
		Example: "  pasteport connections\n" +
			"  pasteport connections --unfinished --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := r.read(cmd.Context(), r.doctor || r.asJSON)
			if err != nil {
				return err
			}
			listed := slices.DeleteFunc(all, func(a diagnosis.Attempt) bool {
				return r.unfinished && (a.State == diagnosis.Connected || a.State == diagnosis.Ended)
			})
			if r.asJSON {
				return term.PrintJSON(out, listed)
			}
			return r.list(out, listed)
		},
	}
	r.addFlags(command)
	command.Flags().BoolVar(&r.unfinished, "unfinished", false, "list only attempts that have not succeeded")
	return command
}

func newTrace(out io.Writer) *cobra.Command {
	r := traceReader{config: service.DefaultConfig()}
	var follow bool
	command := &cobra.Command{
		Use:   "trace [ID]",
		Short: "Show the steps of an attempt to connect, or follow new steps",
		Long: "Show the steps of an attempt to connect: the time and outcome of each, the rule of a refusal, and " +
			"advice. ID is an id from\n" +
			"`pasteport connections` or its beginning, or the incident id of an error page. The default is the " +
			"newest attempt\n" +
			"that reached the authorization page and is not of `pasteport doctor`.",
		Example: "  pasteport trace\n" +
			"  pasteport trace 5f0c\n" +
			"  pasteport trace --follow",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return term.Usagef("give the ID of one attempt")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			id := append(args, "")[0] // "" without an argument
			if follow {
				return r.config.StoreLocation().UseExisting(func(log *persistence.Store) error {
					return r.follow(cmd.Context(), log, id, term.New(out))
				})
			}
			all, err := r.read(cmd.Context(), r.doctor || id != "")
			if err != nil {
				return err
			}
			shown, err := r.find(all, id)
			switch {
			case err != nil:
				return err
			case r.asJSON:
				return term.PrintJSON(out, shown)
			}
			printAttempt(term.New(out), shown)
			return r.printHidden(out)
		},
	}
	r.addFlags(command)
	command.Flags().BoolVar(&follow, "follow", false,
		"print new steps as they happen; with ID, all steps of the attempt")
	return command
}

func (r *traceReader) addFlags(command *cobra.Command) {
	r.config.Table().Flags(command, service.StoreSettings...)
	command.Flags().BoolVar(&r.asJSON, "json", false, "print JSON")
	command.Flags().BoolVar(&r.doctor, "doctor", false, "include attempts of pasteport doctor")
}

// read returns the attempts, the newest first: all, or those that are not of doctor.
func (r *traceReader) read(ctx context.Context, withDoctor bool) (all []diagnosis.Attempt, err error) {
	err = r.config.StoreLocation().UseExisting(func(log *persistence.Store) (err error) {
		all, err = diagnosis.Read(ctx, log, time.Now())
		return err
	})
	if !withDoctor {
		all, r.doctorHidden = diagnosis.WithoutDoctor(all)
	}
	return all, err
}

// dataFlag returns the flag for other commands to read the same data folder, "" for the default.
func (r *traceReader) dataFlag() string {
	if r.config.DataDir == service.DefaultConfig().DataDir {
		return ""
	}
	return " --data " + term.Quote(r.config.DataDir)
}

func (r *traceReader) list(out io.Writer, listed []diagnosis.Attempt) error {
	const maxWho = 40 // characters, because a client chooses its name
	if len(listed) == 0 {
		none := "No client has reached this service in the last seven days."
		if r.unfinished {
			none = "No attempt of the last seven days is unfinished."
		}
		_, err := fmt.Fprintln(out, none+"\n"+
			"If a client cannot connect, the problem is before this service: DNS, certificate or proxy.\n"+
			"next: pasteport doctor URL checks the service from outside")
		return errors.Join(err, r.printHidden(out))
	}
	table := term.NewTable(out, "ID", "BEGAN", "WHO", "STATE", "WHAT")
	for _, a := range listed {
		table.Row(oauth.ShortID(a.ID), term.Time(a.Begun), term.Cut(a.Who(), maxWho), string(a.State), a.Verdict)
	}
	err := errors.Join(table.Flush(), r.printHidden(out))
	if err == nil {
		_, err = fmt.Fprintf(out, "\nnext: pasteport trace ID%s shows the steps of one\n", r.dataFlag())
	}
	return err
}

// printHidden says how many attempts of doctor are not shown, and how to see them.
func (r *traceReader) printHidden(out io.Writer) error {
	if r.doctorHidden == 0 {
		return nil
	}
	_, err := fmt.Fprintf(out, "\n%s of doctor hidden: pasteport connections --doctor%s shows them\n",
		term.Count(r.doctorHidden, "attempt"), r.dataFlag())
	return err
}

// find returns the attempt with the id. For "" it returns the newest that has a step in a browser,
// because probes of a client that is started again may be newer, or else the newest of all.
func (r *traceReader) find(all []diagnosis.Attempt, id string) (diagnosis.Attempt, error) {
	found, only := diagnosis.Find(all, id)
	switch {
	case only:
		return found, nil
	case id != "":
		return found, fmt.Errorf(
			"no attempt, or more than one, has an id that begins with %q: pasteport connections lists them", id)
	case len(all) > 0:
		return all[max(0, slices.IndexFunc(all, func(a diagnosis.Attempt) bool {
			return slices.ContainsFunc(a.Steps, func(s attempt.Step) bool { return s.Kind.Is(attempt.InBrowser) })
		}))], nil
	case r.doctorHidden > 0:
		return found, fmt.Errorf(
			"only doctor has tried to connect in the last seven days: add --doctor to see the newest of %s",
			term.Count(r.doctorHidden, "attempt"))
	}
	return found, errors.New("no client has tried to connect in the last seven days: pasteport doctor URL checks " +
		"the service from outside")
}

func printAttempt(t term.Terminal, a diagnosis.Attempt) {
	t.Printf("%s  %s\nclient   %s\nnetwork  %s\nagent    %s\n\n", a.ID, a.State, cmp.Or(a.Client, "-"),
		cmp.Or(a.Address, "-"), cmp.Or(a.Agent, "-"))
	for i, step := range a.Steps {
		t.Printf("%3d  %s  %s\n", i+1, term.Time(step.At), lineOf(t, step))
	}
	t.Printf("\n%s\n", a.Verdict)
	if a.Hint != "" {
		t.Printf("%s\n", a.Hint)
	}
}

// lineOf formats a step, with its reason on a second line.
func lineOf(t term.Terminal, step attempt.Step) string {
	outcome := t.Green(string(step.Outcome))
	if step.Outcome != attempt.Passed {
		outcome = t.Red(string(step.Outcome))
	}
	line := fmt.Sprintf("%-22s %s", diagnosis.NameOf(step.Kind), outcome)
	if step.Rule != "" && step.Outcome != attempt.Passed {
		line += " [" + step.Rule + "]"
	}
	if step.Reason != "" {
		line += "\n" + strings.Repeat(" ", 33) + step.Reason
	}
	return line
}

// follow prints new steps until ctx ends; with an id, all steps of that attempt.
func (r *traceReader) follow(ctx context.Context, log attempt.Log, id string, out term.Terminal) error {
	all, err := diagnosis.Read(ctx, log, time.Now())
	if err != nil {
		return err
	}
	seen, newest, hidden := map[string][]attempt.Step{}, time.Time{}, 0
	if id != "" {
		followed, err := r.find(all, id)
		if err != nil {
			return err
		}
		id, all = followed.ID, nil
	}
	for _, a := range slices.Backward(all) { // ends with the newest
		seen[a.ID], newest = a.Steps, a.At
	}
	if !r.asJSON {
		out.Printf("following new steps; press Ctrl-C to stop\n")
	}
	poll := time.NewTicker(500 * time.Millisecond)
	defer poll.Stop()
	for ctx.Err() == nil {
		changed, err := log.Attempts(ctx, newest.Add(-time.Minute)) // because processes write their steps late
		if err != nil && ctx.Err() == nil {
			return err
		}
		for _, a := range slices.Backward(changed) {
			before := seen[a.ID]
			seen[a.ID], newest = a.Steps, a.At
			for _, step := range a.Steps {
				switch {
				case slices.Contains(before, step) || id != "" && a.ID != id:
				case r.asJSON:
					if err := printJSONLine(out.Out, a.ID, step); err != nil {
						return err
					}
				case id == "" && !r.doctor && attempt.IsDoctor(a.Agent):
					if hidden++; hidden == 1 {
						out.Printf("steps of doctor are hidden: --doctor shows them\n")
					}
				default:
					out.Printf("%s  %-8s  %s\n", term.Time(step.At), oauth.ShortID(a.ID), lineOf(out, step))
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-poll.C:
		}
	}
	if hidden > 0 {
		out.Printf("hidden: %s of doctor\n", term.Count(hidden, "step"))
	}
	return nil
}

func printJSONLine(out io.Writer, id string, step attempt.Step) error {
	line := struct {
		Attempt string `json:"attempt"`
		attempt.Step
	}{id, step}
	if err := json.NewEncoder(out).Encode(line); err != nil {
		return fmt.Errorf("printing a step: %w", err)
	}
	return nil
}
