// Package doctor is the command "doctor": it checks a Pasteport from outside, like a client, or
// with --egress the network of this computer, and prints the findings. Checks are run in order, and
// each returns a finding. Every request is limited in time and size, follows no redirect, and goes
// only to the given URL or to an address that its metadata names.
package doctor

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// options are the flags. The lower ones are what they and the argument mean.
type options struct {
	token               string            // of the site, for the login; "" skips the login
	authorizationServer string            // the one origin besides endpoint's that may get token and fields
	fields              map[string]string // besides the token, at a site that asks for several
	authorities         string            // file of more root certificates
	origin              string            // of a web page that must be able to connect; "" uses an unknown one
	clients             string            // of --clients: empty, allWellKnown or client_ids
	limit               time.Duration     // of each request
	asJSON, egress      bool

	config   *service.Config
	endpoint *url.URL       // of the MCP server: https, or http on this computer
	roots    *x509.CertPool // nil uses the system's
}

// NewCommand returns the command.
func NewCommand(in io.Reader, out, errOut io.Writer) *cobra.Command {
	o := &options{config: service.DefaultConfig()}
	table := o.config.Table()
	command := &cobra.Command{
		Use:   "doctor URL",
		Short: "Check a Pasteport from outside",
		Long: "Check the Pasteport with the MCP server at URL like a client: TLS, challenge, metadata, CORS, " +
			"caching, clock and proxy\n" +
			"mistakes, which well-known clients can log in, and, by the admin listener of a gateway on this " +
			"computer or at\n" +
			"--admin-addr, whether the MCP servers behind it work. With --token, a token of the site, it also runs " +
			"a whole login and\n" +
			"revokes its tokens; this needs doctor-client: true, or development. The token goes only to the host of " +
			"URL or to\n" +
			"--authorization-server. No token or other secret is printed.\n" +
			"With --egress, fetch the metadata documents of well-known clients, or those at the given URLs, as a " +
			"service with these\n" +
			"settings does, and say which are reachable, blocked, for example by a bot challenge, or wrong.\n" +
			"Exit codes: 0: no check failed; 1: a check failed; 2: wrong usage.",
		Example: "  pasteport doctor https://cms.example.com/mcp\n" +
			"  pasteport doctor https://cms.example.com/mcp --token - < token.txt\n" +
			"  pasteport doctor https://cms.example.com/mcp --clients\n" +
			"  pasteport doctor --egress --config /etc/pasteport.yaml",
		Args:    func(_ *cobra.Command, args []string) error { return o.check(args) },
		PreRunE: func(*cobra.Command, []string) error { return table.Explain(table.Read()) },
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.roots, err = readAuthorities(o.authorities); err != nil {
				return err
			}
			r := &reporter{out: term.New(out), asJSON: o.asJSON}
			if o.egress {
				return o.runEgress(cmd.Context(), table.Explain, args, r)
			}
			return o.run(cmd.Context(), in, errOut, r)
		},
	}
	table.Flags(command, append([]string{"admin-addr"}, service.EgressSettings...)...)
	o.addFlags(command)
	return command
}

func (o *options) addFlags(command *cobra.Command) {
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
	flags.BoolVar(&o.egress, "egress", false,
		"fetch the metadata documents of well-known clients, or those at the given URLs, from this computer")
	flags.StringVar(&o.clients, "clients", "", "ask the server about each well-known client with an authorization "+
		"request, or about those at the given client_ids; the server fetches their documents")
	flags.Lookup("clients").NoOptDefVal = allWellKnown
}

// check finds mistakes in the flags and arguments.
func (o *options) check(args []string) (err error) {
	if o.egress {
		return o.checkEgressArgs(args)
	}
	if len(args) != 1 {
		return term.Usagef("name the URL of one MCP server, for example https://cms.example.com/mcp")
	}
	o.endpoint, err = url.Parse(args[0])
	switch {
	case err != nil || o.endpoint.Host == "" || o.endpoint.Scheme != "https" && o.endpoint.Scheme != "http" ||
		o.endpoint.User != nil || o.endpoint.Fragment != "":
		return term.Usagef("invalid URL of an MCP server: write it like https://cms.example.com/mcp, without a " +
			"password and without #")
	case o.origin != "" && !isOrigin(o.origin):
		return term.Usagef(
			"--origin %q is not an origin: write it like http://localhost:6274, without a trailing slash", o.origin)
	case o.authorizationServer != "" && !isOrigin(o.authorizationServer):
		return term.Usagef("--authorization-server %q is not an origin: write it like https://login.example.com, "+
			"without a trailing slash", o.authorizationServer)
	case o.clients != "" && o.clients != allWellKnown && !areDocuments(namedClients(o.clients)):
		return term.Usagef("--clients=%s: write client_ids, which are https URLs, after the equals sign, with commas "+
			"between, or --clients alone", o.clients)
	case o.limit <= 0:
		return term.Usagef("--timeout must be positive")
	}
	return nil
}

func (o *options) run(ctx context.Context, in io.Reader, errOut io.Writer, r *reporter) error {
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
	d := diagnosis{URL: o.endpoint.String(), Result: statusOK}
	e := newExamination(*o, newWire(o.roots, o.limit))
	defer e.wire.close()
	if err := e.examine(ctx, &d, r); err != nil {
		return err
	}
	for _, found := range fromInside(ctx, o.config.AdminAddr, o.endpoint) {
		d.add(found, r)
	}
	d.Next = next(d)
	return r.conclude(d)
}

// readAuthorities returns the system's authorities and those of the file; nil without a file.
func readAuthorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the root certificates: %w: name a PEM file with --ca", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("reading the system's root certificates: %w", err)
	}
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("reading the root certificates: %s has no certificate: name a PEM file with --ca", file)
	}
	return roots, nil
}
