// Package doctor is the command "doctor": it asks eleven questions about a Pasteport from outside,
// like a client, and says what it saw and how to fix it. Every request is limited in time and size,
// follows no redirect, and goes only to the given URL or to an address that its metadata names.
package doctor

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// options are the flags and the argument.
type options struct {
	token               string            // of the site, for the login; "" skips the login
	authorizationServer string            // the one origin besides endpoint's that may get token and fields
	fields              map[string]string // besides the token, at a site that asks for several
	authorities         string            // file of more root certificates
	origin              string            // of a web page that must be able to connect; "" uses an unknown one
	limit               time.Duration     // of each request
	asJSON              bool

	admin    string         // address of the admin listener
	endpoint *url.URL       // of the MCP server: https, or http on this computer
	roots    *x509.CertPool // nil uses the system's
}

// NewCommand returns the command.
func NewCommand(in io.Reader, out, errOut io.Writer) *cobra.Command {
	o, config := &options{}, service.DefaultConfig()
	command := &cobra.Command{
		Use:   "doctor URL",
		Short: "Check a Pasteport from outside",
		Long: "Check the Pasteport with the MCP server at URL like a client: connection, challenge, metadata, token " +
			"endpoint, CORS,\n" +
			"and, by the admin listener of a gateway on this computer or at --admin-addr, the MCP server behind it.\n" +
			"With --token, a token of the site, it also runs a whole login and revokes its tokens; this needs " +
			"doctor-client: true, or\n" +
			"development. The token goes only to the host of URL or to --authorization-server. No token or other " +
			"secret is printed.\n" +
			"Exit codes: 0: no check failed; 1: a check failed; 2: wrong usage.",
		Example: "  pasteport doctor https://cms.example.com/mcp\n" +
			"  pasteport doctor https://cms.example.com/mcp --token - < token.txt",
		Args: func(_ *cobra.Command, args []string) error { return o.check(args) },
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.roots, err = service.WithAuthorities(nil, o.authorities); err != nil {
				return fmt.Errorf("reading the root certificates of --ca: %w", err)
			}
			o.admin = config.AdminAddr
			return o.run(cmd.Context(), in, term.New(out), errOut)
		},
	}
	config.Table().Flags(command, "admin-addr")
	flags := command.Flags()
	flags.StringVar(&o.token, "token", "", "token of the site for a whole login; - reads it from standard input")
	flags.StringVar(&o.authorizationServer, "authorization-server", "",
		"origin of an authorization server on another host than URL, to which the token may go, for example "+
			"https://login.example.com")
	flags.StringToStringVar(&o.fields, "field", nil,
		"value of another field that the site asks for, as NAME=VALUE; can be repeated")
	flags.StringVar(&o.authorities, "ca", "", "PEM file with additional root certificates")
	flags.StringVar(&o.origin, "origin", "",
		"origin of a web page that must be able to connect, for example http://localhost:6274")
	flags.DurationVar(&o.limit, "timeout", 10*time.Second, "timeout for each response")
	flags.BoolVar(&o.asJSON, "json", false, "print the report as JSON")
	return command
}

// check finds mistakes in the flags and the argument.
func (o *options) check(args []string) (err error) {
	if len(args) != 1 {
		return term.Usagef("name the URL of one MCP server, for example https://cms.example.com/mcp")
	}
	o.endpoint, err = url.Parse(args[0])
	switch {
	case err != nil || o.endpoint.Host == "" || o.endpoint.Scheme != "https" && o.endpoint.Scheme != "http" ||
		o.endpoint.User != nil || o.endpoint.Fragment != "":
		return term.Usagef("invalid URL of an MCP server: write it like https://cms.example.com/mcp, without a " +
			"password and without #")
	case !isOrigin(o.origin):
		return term.Usagef(
			"--origin %q is not an origin: write it like http://localhost:6274, without a trailing slash", o.origin)
	case !isOrigin(o.authorizationServer):
		return term.Usagef("--authorization-server %q is not an origin: write it like https://login.example.com, "+
			"without a trailing slash", o.authorizationServer)
	case o.limit <= 0:
		return term.Usagef("--timeout must be positive")
	}
	return nil
}

// isOrigin reports whether the text is empty or an origin.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return text == "" || err == nil && u.Host != "" && text == originOf(u)
}

// The results of a check.
const (
	passed  = "ok"
	failed  = "failed"
	skipped = "skipped" // the check was not possible
)

// result is the outcome of a check in the report.
type result struct {
	Name     string `json:"name"`
	Question string `json:"question"`
	Status   string `json:"status"`
	Seen     string `json:"seen"`          // or why the check was skipped
	Fix      string `json:"fix,omitempty"` // of a failure
}

func (o *options) run(ctx context.Context, in io.Reader, out term.Terminal, errOut io.Writer) error {
	if o.token == "-" { // keeps the token out of the list of processes
		token, err := term.ReadToken(ctx, in, errOut)
		if err != nil {
			return term.Usage(err)
		}
		o.token = token.Reveal()
	}
	if o.token != "" && o.authorizationServer != "" {
		_, _ = fmt.Fprintf(errOut, "the token may go to %s\n", o.authorizationServer)
	}
	results, err := newProbe(o).examine(ctx, func(r result) {
		if o.asJSON {
			return
		}
		label := fmt.Sprintf("%-8s", r.Status)
		switch r.Status {
		case passed:
			label = out.Green(label)
		case failed:
			label = out.Red(label)
		}
		out.Printf("%s %-10s %s\n", label, r.Name, r.Seen)
		if r.Fix != "" {
			out.Printf("%s%s\n%[1]sfix: %[3]s\n", strings.Repeat(" ", 20), r.Question, r.Fix)
		}
	})
	if err != nil {
		return err
	}
	if o.asJSON {
		report := map[string]any{"url": o.endpoint.String(), "checks": results}
		if err := term.PrintJSON(out.Out, report); err != nil {
			return err
		}
	}
	count := map[string]int{}
	for _, r := range results {
		count[r.Status]++
	}
	if !o.asJSON {
		out.Printf("\n%d ok, %d failed, %d skipped\n", count[passed], count[failed], count[skipped])
	}
	if count[failed] > 0 {
		return fmt.Errorf("%d of %d checks failed", count[failed], len(results))
	}
	return nil
}
