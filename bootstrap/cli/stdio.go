package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/oauth"
)

func newStdio(in io.ReadCloser, out, errOut io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	table := config.Table()
	stdio := &cobra.Command{
		Use:   "stdio",
		Short: "Serve the demo site's tools to a local client, without OAuth",
		Args:  term.NoArguments,
		Long: "Serve the demo site's MCP tools over standard input and output, for a client that starts it as a " +
			"local process.\n" +
			"It needs no OAuth, because a user who can start the process can read its files. The tools run with the " +
			"role of --demo-token,\n" +
			"or as an editor without it.",
		Example: "  pasteport stdio --data pasteport-data",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return table.Explain(serveStdio(cmd.Context(), config, in, out))
		},
	}
	table.Flags(stdio, "data", "demo-token")
	return stdio
}

func serveStdio(ctx context.Context, config *service.Config, in io.ReadCloser, out io.Writer) error {
	if err := service.MakeDataDir(config.DataDir); err != nil {
		return err
	}
	site, err := demosite.Open(config.DataDir)
	if err != nil {
		return err
	}
	caller, err := localCaller(ctx, site, config.EditorToken)
	if err != nil {
		return err
	}
	tools := bootstrap.NewMCPServer(site.MCPServer(bootstrap.CallerOf), bootstrap.WithToolPolicy(site.MayCall))
	if err := tools.ServeStdio(ctx, in, writeCloser{out}, caller); ctx.Err() == nil {
		return err
	}
	return nil // stopped by a signal
}

// localCaller returns the owner of the token, or an editor without a token.
func localCaller(ctx context.Context, site *demosite.Site, token string) (oauth.Caller, error) {
	if token == "" {
		return oauth.Caller{Subject: "local", Roles: []string{string(demosite.Editor)}}, nil
	}
	principal, err := site.VerifyBearer(ctx, token)
	if err != nil {
		return oauth.Caller{}, oauth.NewMistake("demo-token", "is unknown to the demo site: start the site once with "+
			"\"pasteport serve\", or leave the token out")
	}
	return oauth.Caller{Subject: principal.Subject, Roles: principal.Roles}, nil
}

// writeCloser leaves the stream open, because it belongs to the caller.
type writeCloser struct{ io.Writer }

func (writeCloser) Close() error { return nil }
