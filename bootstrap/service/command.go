package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/bootstrap/settings"
)

// Exit codes that scripts can rely on.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// usageError marks what the person typed wrongly.
type usageError struct{ error }

// Run executes one command line and returns the exit code. Results go to out, logs and errors to errOut.
func Run(ctx context.Context, args []string, in io.ReadCloser, out, errOut io.Writer) int {
	root := newRoot(in, out, errOut)
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		_, _ = fmt.Fprintf(errOut, "pasteport: %v\nTry: pasteport --help\n", err)
		return exitUsage
	}
	_, _ = fmt.Fprintf(errOut, "pasteport: %v\n", err)
	return exitFailure
}

func newRoot(in io.ReadCloser, out, errOut io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "pasteport",
		Short: "OAuth 2.1 for MCP servers whose site already has API tokens",
		Example: "  pasteport demo            watch a client connect, then try it in a browser\n" +
			"  pasteport serve --dev     run the demo site for a client on this computer\n" +
			"  pasteport gateway --dev --upstream http://127.0.0.1:9000/mcp     put OAuth in front of an MCP server",
		SilenceUsage: true, SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("there is no command %q", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error { return usageError{settings.ExplainFlag(command, err)} })
	addGroup(root, "Serve", newDemo(in, out), newServe(out, errOut), newGatewayCommand(out, errOut), newStdio(in, out, errOut), newHealth(out))
	addGroup(root, "Set up", newConfig(out), newHashToken(in, out, errOut), newKeys(out), newStore(out))
	addGroup(root, "Find out why a client does not connect", newConnections(out), newTrace(out), newDoctor(in, out, errOut))
	addGroup(root, "End what is connected", newGrants(in, out, errOut))
	root.AddCommand(newVersion(out))
	return root
}

// addGroup adds commands that stand together in the help.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
	for _, command := range commands {
		command.GroupID = title
		root.AddCommand(command)
	}
}

func newVersion(out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(out, "pasteport", version())
			return err
		},
	}
}

// version is what the Go toolchain stamped into the binary.
func version() string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, setting := range build.Settings {
		if setting.Key == "vcs.revision" {
			return build.Main.Version + " " + setting.Value
		}
	}
	return build.Main.Version
}

// noArguments does not repeat what was typed, which may be a secret that lost its flag.
func noArguments(command *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unexpected argument: %q takes flags only, each as --name=value", command.CommandPath())}
	}
	return nil
}

func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
