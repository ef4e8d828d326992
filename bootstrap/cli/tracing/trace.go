// Package tracing is the commands "connections" and "trace": they list the attempts to connect that the store remembers, and show one of them
// step by step or as it happens.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/server"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

type traceOptions struct {
	config       *server.Config
	json, follow bool
	unfinished   bool
}

// NewConnections returns the command that lists the attempts to connect.
func NewConnections(out io.Writer) *cobra.Command {
	o := traceOptions{config: server.DefaultConfig()}
	command := &cobra.Command{
		Use: "connections", Short: "List the attempts to connect, and what became of each", Args: term.NoArguments,
		Long: "List the attempts of clients to connect during the last seven days, the newest first: who it was, how far it came, and what is\n" +
			"the matter with those that did not come through. It reads the data folder, also beside a running service.",
		Example: "  pasteport connections\n" +
			"  pasteport connections --unfinished --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withTrace(o.config, func(log trace.Log) error { return listConnections(cmd.Context(), log, o, out) })
		},
	}
	o.addFlags(command)
	command.Flags().BoolVar(&o.unfinished, "unfinished", false, "only those that stopped or are not through")
	return command
}

// NewTrace returns the command that shows one attempt, or follows all.
func NewTrace(out io.Writer) *cobra.Command {
	o := traceOptions{config: server.DefaultConfig()}
	command := &cobra.Command{
		Use: "trace [ID]", Short: "Show an attempt to connect step by step, or follow all as they happen",
		Long: "Show the steps of one attempt to connect: when each was, what came of it, under which rule it was refused, and what to do about\n" +
			"it. ID is one of `pasteport connections` or its beginning, or the incident id that a page has shown; without it the newest\n" +
			"attempt is shown.",
		Example: "  pasteport trace\n" +
			"  pasteport trace 5f0c\n" +
			"  pasteport trace --follow",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return term.Usagef("name one attempt")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return withTrace(o.config, func(log trace.Log) error {
				if o.follow {
					live := &following{log: log, id: append(args, "")[0], json: o.json, out: term.New(out)}
					return live.run(cmd.Context())
				}
				return showConnection(cmd.Context(), log, o, append(args, "")[0], term.New(out))
			})
		},
	}
	o.addFlags(command)
	command.Flags().BoolVar(&o.follow, "follow", false, "show steps as they happen, until Ctrl-C")
	return command
}

func (o *traceOptions) addFlags(command *cobra.Command) {
	o.config.Table().Flags(command, server.StoreSettings...)
	command.Flags().BoolVar(&o.json, "json", false, "print JSON")
}

// dataFlag returns the flag that another command needs to read the same data.
func (o *traceOptions) dataFlag() string {
	if o.config.DataDir == server.DefaultConfig().DataDir {
		return ""
	}
	return " --data " + term.Quote(o.config.DataDir)
}

// withTrace passes the trace of the configured store to use; the store must exist.
func withTrace(config *server.Config, use func(trace.Log) error) error {
	store, err := config.StoreLocation().OpenExisting()
	if err != nil {
		return err
	}
	return errors.Join(use(store), store.Close())
}

func assembled(ctx context.Context, log trace.Log) ([]trace.Connection, error) {
	steps, err := log.Steps(ctx, 0)
	if err != nil {
		return nil, err
	}
	return trace.Assemble(steps, time.Now()), nil
}

func listConnections(ctx context.Context, log trace.Log, o traceOptions, out io.Writer) error {
	all, err := assembled(ctx, log)
	if err != nil {
		return err
	}
	listed := make([]trace.Connection, 0, len(all))
	for _, connection := range all {
		if o.unfinished && (connection.State == trace.Connected || connection.State == trace.Over) {
			continue
		}
		listed = append(listed, connection)
	}
	if o.json {
		return term.PrintJSON(out, listed)
	}
	if len(listed) == 0 {
		_, err := fmt.Fprintln(out, "No client has reached this service in the last seven days, or none is unfinished.\n"+
			"If one says that it cannot connect, what fails comes before this service: its name, certificate or proxy.\n"+
			"next: pasteport doctor URL looks from outside")
		return err
	}
	return printTable(out, listed, o.dataFlag())
}

func printTable(out io.Writer, listed []trace.Connection, folder string) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ID\tBEGAN\tWHO\tSTATE\tWHAT")
	for _, c := range listed {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", oauth.ShortID(c.ID), term.Time(c.Began()), cut(c.Who()), c.State, c.Verdict)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the connections: %w", err)
	}
	_, err := fmt.Fprintf(out, "\nnext: pasteport trace ID%s shows one step by step\n", folder)
	return err
}

func showConnection(ctx context.Context, log trace.Log, o traceOptions, id string, t term.Terminal) error {
	all, err := assembled(ctx, log)
	if err != nil {
		return err
	}
	shown, err := findConnection(all, id)
	if err != nil {
		return err
	}
	if o.json {
		return term.PrintJSON(t.Out, shown)
	}
	printConnection(t, shown)
	return nil
}

// findConnection returns the connection with the id, or the newest for "".
func findConnection(all []trace.Connection, id string) (trace.Connection, error) {
	switch found, only := trace.Find(all, id); {
	case only:
		return found, nil
	case id == "" && len(all) > 0:
		return all[0], nil
	case id == "":
		return found, errors.New("no client has tried to connect in the last seven days: pasteport doctor URL checks the service from outside")
	}
	return trace.Connection{}, fmt.Errorf("there is not exactly one attempt with the id %q: pasteport connections lists them", id)
}

func printConnection(t term.Terminal, c trace.Connection) {
	t.Printf("%s  %s\nclient   %s\nnetwork  %s\nagent    %s\n\n", t.Bold(c.ID), stateOf(t, c), term.OrDash(c.Client), term.OrDash(c.Address), term.OrDash(c.Agent))
	for i, step := range c.Steps {
		t.Printf("%3d  %s  %s\n", i+1, term.Time(step.At), lineOf(t, step))
	}
	t.Printf("\n%s\n", c.Verdict)
	if c.Hint != "" {
		t.Printf("%s\n", c.Hint)
	}
}

// lineOf formats a step as one line, with a second line for its reason.
func lineOf(t term.Terminal, step trace.Step) string {
	line := fmt.Sprintf("%-22s %s", step.Kind.Name(), outcomeOf(t, step.Outcome))
	if step.Rule != "" {
		line += " [" + step.Rule + "]"
	}
	if step.Reason != "" {
		line += "\n" + "                                 " + step.Reason
	}
	return line
}

func outcomeOf(t term.Terminal, outcome trace.Outcome) string {
	if outcome == trace.Passed {
		return t.Green(string(outcome))
	}
	return t.Red(string(outcome))
}

func stateOf(t term.Terminal, c trace.Connection) string {
	switch c.State {
	case trace.Connected:
		return t.Green(string(c.State))
	case trace.HalfWay, trace.Stopped:
		return t.Red(string(c.State))
	}
	return string(c.State)
}

// cut keeps a column narrow; a client chooses its name and address.
func cut(text string) string {
	const widest = 40
	if len(text) <= widest {
		return text
	}
	return text[:widest-3] + "..."
}
