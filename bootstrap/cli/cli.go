// Package cli is the program's command line. Run executes one command. A file holds one command or
// a group of related ones, and larger commands are packages below. A command reads its settings
// into a service.Config.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/bootstrap/cli/demo"
	"github.com/pasteport/pasteport/bootstrap/cli/doctor"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/bootstrap/settings"
)

// Exit codes that scripts can rely on.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// Run executes one command line and returns the exit code. Results go to out, logs and errors to
// errOut.
func Run(ctx context.Context, args []string, in io.ReadCloser, out, errOut io.Writer) int {
	root := newRoot(in, out, errOut)
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	if len(args) > 0 && slices.Contains([]string{cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}, args[0]) {
		settings.Complete(root)
	}
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	code, advice := exitFailure, ""
	if _, isUsage := errors.AsType[term.UsageError](err); isUsage {
		code, advice = exitUsage, "Try: "+command.CommandPath()+" --help\n"
	}
	if _, isLogged := errors.AsType[loggedError](err); !isLogged {
		_, _ = fmt.Fprintf(errOut, "pasteport: %v\n%s", err, advice)
	}
	return code
}

func newRoot(in io.ReadCloser, out, errOut io.Writer) *cobra.Command {
	printVersion := func() error {
		_, err := fmt.Fprintln(out, "pasteport", service.Version())
		return err
	}
	var version bool
	root := &cobra.Command{
		Use:   "pasteport",
		Short: "OAuth 2.1 for MCP servers of sites with their own API tokens",
		Example: "  pasteport demo            watch a client connect, then try it in a browser\n" +
			"  pasteport serve --dev     run the demo site for local clients\n" +
			"  pasteport gateway --dev --upstream http://127.0.0.1:9000/mcp     put OAuth in front of an MCP server",
		SilenceUsage:               true,
		SilenceErrors:              true,
		Args:                       term.OnlyCommands,
		SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				return printVersion()
			}
			return cmd.Help()
		},
	}
	// Cobra's version flag needs a template for this text, and text/template bloats the program.
	root.Flags().BoolVar(&version, "version", false, "print the version")
	root.SetFlagErrorFunc(explainFlag)
	addGroup(root, "Serve", demo.NewCommand(in, out), newServe(out, errOut), newGateway(out, errOut),
		newServer(out, errOut), newHealth(out))
	addGroup(root, "Set up", newConfig(out), newHashToken(in, out, errOut),
		newGroup("keys", "Show and replace the server secret", newKeysList(out), newKeysRotate(out)),
		newGroup("store", "Migrate, check, back up and copy the database", newStoreMigrate(out),
			newStoreCheck(out), newStoreBackup(out), newStoreCopy(out)))
	addGroup(root, "Manage clients",
		newGroup("clients", "List clients and their documents, and register a client",
			newClientsList(out), newClientsKnown(out), newClientsFetch(out), newClientsRegister(out, errOut)))
	addGroup(root, "Troubleshoot", newConnections(out), newTrace(out), doctor.NewCommand(in, out, errOut))
	addGroup(root, "Manage grants",
		newGroup("grants", "List and end grants", newGrantsList(in, out, errOut),
			newGrantsEnd(in, out, errOut)))
	addGroup(root, "Audit calls",
		newGroup("audit", "List and verify the audit of calls", newAuditList(out), newAuditVerify(out)))
	root.AddCommand(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  term.NoArguments,
		RunE:  func(*cobra.Command, []string) error { return printVersion() },
	})
	return root
}

// explainFlag reports a mistyped command, if there is one, because its flags are unknown too.
func explainFlag(command *cobra.Command, err error) error {
	if command.HasSubCommands() {
		if unknown := term.OnlyCommands(command, command.Flags().Args()); unknown != nil {
			return unknown
		}
	}
	return term.Usage(settings.ExplainFlag(command, err))
}

// addGroup adds commands under one title of the help.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
	for _, command := range commands {
		command.GroupID = title
		root.AddCommand(command)
	}
}

// newGroup returns a command that only has subcommands.
func newGroup(name, short string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use:                        name,
		Short:                      short,
		Args:                       term.OnlyCommands,
		SuggestionsMinimumDistance: 2,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(commands...)
	return group
}
