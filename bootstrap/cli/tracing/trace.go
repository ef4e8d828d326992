// Package tracing implements the commands "connections" and "trace". They list the attempts of
// clients to connect from the trace in the store, and show the steps of one attempt, or all new
// steps.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/adapters/diagnosis"
	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/connection"
	"github.com/pasteport/pasteport/domain/oauth"
)

type traceOptions struct {
	config       *service.Config
	json, follow bool
	unfinished   bool
	doctor       bool // also those of pasteport doctor
}

// NewConnections returns the command that lists the attempts to connect.
func NewConnections(out io.Writer) *cobra.Command {
	o := traceOptions{config: service.DefaultConfig()}
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
			return o.config.StoreLocation().UseExisting(func(log *persistence.Store) error {
				return listAttempts(cmd.Context(), log, o, out)
			})
		},
	}
	o.addFlags(command)
	command.Flags().BoolVar(&o.unfinished, "unfinished", false, "list only attempts that have not succeeded")
	return command
}

// NewTrace returns the command that shows the steps of an attempt.
func NewTrace(out io.Writer) *cobra.Command {
	o := traceOptions{config: service.DefaultConfig()}
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
			return o.config.StoreLocation().UseExisting(func(log *persistence.Store) error {
				if o.follow {
					live := &follower{
						log:    log,
						id:     append(args, "")[0],
						json:   o.json,
						doctor: o.doctor,
						out:    term.New(out),
					}
					return live.run(cmd.Context())
				}
				return showAttempt(cmd.Context(), log, o, append(args, "")[0], term.New(out))
			})
		},
	}
	o.addFlags(command)
	command.Flags().BoolVar(&o.follow, "follow", false, "print new steps until Ctrl-C")
	return command
}

func (o *traceOptions) addFlags(command *cobra.Command) {
	o.config.Table().Flags(command, service.StoreSettings...)
	command.Flags().BoolVar(&o.json, "json", false, "print JSON")
	command.Flags().BoolVar(&o.doctor, "doctor", false, "include attempts of pasteport doctor")
}

// dataFlag returns the flag for other commands to read the same data folder, "" for the default.
func (o *traceOptions) dataFlag() string {
	if o.config.DataDir == service.DefaultConfig().DataDir {
		return ""
	}
	return " --data " + term.Quote(o.config.DataDir)
}

func listAttempts(ctx context.Context, log connection.Log, o traceOptions, out io.Writer) error {
	all, err := diagnosis.Read(ctx, log, time.Now())
	if err != nil {
		return err
	}
	listed := make([]diagnosis.Attempt, 0, len(all))
	for _, c := range all {
		if !o.unfinished || c.State != diagnosis.Connected && c.State != diagnosis.Ended {
			listed = append(listed, c)
		}
	}
	if o.json {
		return term.PrintJSON(out, listed)
	}
	listed, hidden := o.withoutDoctor(listed)
	if len(listed) == 0 {
		_, err := fmt.Fprintln(out,
			"No client has reached this service in the last seven days, or no attempt is unfinished.\n"+
				"If a client cannot connect, the problem is before this service: DNS, certificate or proxy.\n"+
				"next: pasteport doctor URL checks the service from outside")
		return errors.Join(err, o.printHidden(out, hidden))
	}
	if err := errors.Join(printTable(out, listed), o.printHidden(out, hidden)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "next: pasteport trace ID%s shows the steps of one\n", o.dataFlag())
	return err
}

// withoutDoctor returns the attempts to show, and the number of those of doctor that it left
// out.
func (o *traceOptions) withoutDoctor(all []diagnosis.Attempt) (shown []diagnosis.Attempt, hidden int) {
	if o.doctor {
		return all, 0
	}
	return diagnosis.WithoutDoctor(all)
}

// printHidden says how many attempts of doctor are not shown, and how to see them.
func (o *traceOptions) printHidden(out io.Writer, hidden int) error {
	if hidden == 0 {
		return nil
	}
	_, err := fmt.Fprintf(out, "%s of doctor hidden: pasteport connections --doctor%s shows them\n",
		term.Count(hidden, "attempt"), o.dataFlag())
	return err
}

func printTable(out io.Writer, listed []diagnosis.Attempt) error {
	const maxWho = 40 // characters, because a client chooses its name
	table := term.NewTable(out, "ID", "BEGAN", "WHO", "STATE", "WHAT")
	for _, c := range listed {
		table.Row(oauth.ShortID(c.ID), term.Time(c.Begun), term.Cut(c.Who(), maxWho), string(c.State), c.Verdict)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}

func showAttempt(ctx context.Context, log connection.Log, o traceOptions, id string, t term.Terminal) error {
	all, err := diagnosis.Read(ctx, log, time.Now())
	if err != nil {
		return err
	}
	hidden := 0
	if id == "" {
		all, hidden = o.withoutDoctor(all)
	}
	shown, err := findAttempt(all, id)
	switch {
	case id == "" && err != nil && hidden > 0:
		return fmt.Errorf(
			"only doctor has tried to connect in the last seven days: add --doctor to see the newest of %s",
			term.Count(hidden, "attempt"))
	case err != nil:
		return err
	case o.json:
		return term.PrintJSON(t.Out, shown)
	}
	printAttempt(t, shown)
	return o.printHidden(t.Out, hidden)
}

// findAttempt returns the attempt with the id, or for "" the newest, preferably
// one that reached the page.
func findAttempt(all []diagnosis.Attempt, id string) (diagnosis.Attempt, error) {
	switch found, only := diagnosis.Find(all, id); {
	case only:
		return found, nil
	case id == "" && len(all) > 0:
		return all[max(0, slices.IndexFunc(all, reachedPage))], nil
	case id == "":
		return found, errors.New("no client has tried to connect in the last seven days: pasteport doctor URL checks " +
			"the service from outside")
	}
	return diagnosis.Attempt{},
		fmt.Errorf("no attempt, or more than one, has an id that begins with %q: pasteport connections lists them", id)
}

// reachedPage reports whether a person came to the page. Probes of a client that is started again
// would hide such an attempt.
func reachedPage(a diagnosis.Attempt) bool {
	return slices.ContainsFunc(a.Steps, func(s connection.Step) bool { return s.Kind.Is(connection.InBrowser) })
}

func printAttempt(t term.Terminal, c diagnosis.Attempt) {
	t.Printf("%s  %s\nclient   %s\nnetwork  %s\nagent    %s\n\n", t.Bold(c.ID), stateOf(t, c), term.OrDash(c.Client),
		term.OrDash(c.Address), term.OrDash(c.Agent))
	for i, step := range c.Steps {
		t.Printf("%3d  %s  %s\n", i+1, term.Time(step.At), lineOf(t, step))
	}
	t.Printf("\n%s\n", c.Verdict)
	if c.Hint != "" {
		t.Printf("%s\n", c.Hint)
	}
}

// lineOf formats a step, with its reason on a second line.
func lineOf(t term.Terminal, step connection.Step) string {
	outcome := t.Red(string(step.Outcome))
	if step.Outcome == connection.Passed {
		outcome = t.Green(string(step.Outcome))
	}
	line := fmt.Sprintf("%-22s %s", diagnosis.NameOf(step.Kind), outcome)
	if step.Rule != "" && step.Outcome != connection.Passed {
		line += " [" + step.Rule + "]"
	}
	if step.Reason != "" {
		line += "\n" + strings.Repeat(" ", 33) + step.Reason
	}
	return line
}

func stateOf(t term.Terminal, c diagnosis.Attempt) string {
	switch c.State {
	case diagnosis.Connected:
		return t.Green(string(c.State))
	case diagnosis.HalfWay, diagnosis.Stopped:
		return t.Red(string(c.State))
	}
	return string(c.State)
}
