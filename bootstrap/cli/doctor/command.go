// Package doctor is the command "doctor": it checks an MCP server with OAuth from the outside, like
// a client, or with --egress the network of this computer, and prints the findings. Tables of
// checks are run in order, and each returns a finding. Every request is limited in time and size,
// follows no redirect, and goes only to the given URL or to an address that its metadata names.
package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/adapters/certificates"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
)

const defaultCertificate = "pasteport-doctor.pem"

type doctorOptions struct {
	fields                                            map[string]string
	token, clientID, certificate, authorities, origin string
	authorizationServer                               string // its origin, if the token may go there
	limit                                             time.Duration
	adminAddr                                         *string // of the gateway, for the states of its upstreams
	asJSON, printDocument, egress                     bool
	servesDocument                                    bool   // --certificate was given
	clients                                           string // of --clients: empty, allWellKnown or URLs
}

// NewCommand returns the command.
func NewCommand(in io.Reader, out, errOut io.Writer) *cobra.Command {
	var o doctorOptions
	config := service.DefaultConfig()
	o.adminAddr = &config.AdminAddr
	table := config.Table()
	command := &cobra.Command{
		Use: "doctor URL", Short: "Check an MCP server with OAuth from the outside",
		Long: "Check any MCP server at URL like a client: TLS, challenge, metadata, CORS, caching, clock and proxy " +
			"mistakes.\n" +
			"It reads from the admin listener of a gateway, on this computer or at --admin-addr, whether the MCP " +
			"servers behind it work.\n" +
			"With --token, a token of the site, it also runs a whole login: it opens the consent page, approves, " +
			"exchanges the code,\n" +
			"uses the MCP server, and revokes its tokens. The token goes only to the host of URL; doctor names\n" +
			"another authorization server, and sends the token there only with --authorization-server. It prints " +
			"no tokens or other secrets.\n" +
			"A Pasteport with doctor-client: true, or in development, publishes the client " +
			"document that this needs.\n" +
			"It says which well-known clients can log in, by the metadata of the server. With --clients, it also " +
			"opens the authorization\n" +
			"page for each client that publishes a document, which makes the server fetch the documents.\n" +
			"With --egress, it fetches the metadata documents of well-known clients, or those at the given URLs, " +
			"from this computer as a\n" +
			"service with these settings does, and says which are reachable, blocked, for example by a bot " +
			"challenge, or wrong.\n" +
			"Exit codes: 0: no check failed; 1: a check failed; 2: wrong usage.",
		Example: "  pasteport doctor https://cms.example.com/mcp\n" +
			"  pasteport doctor https://cms.example.com/mcp --token - < token.txt\n" +
			"  pasteport doctor --print-client-document --client-id https://ops.example.com/doctor.json " +
			"> doctor.json\n" +
			"  pasteport doctor https://cms.example.com/mcp --client-id https://ops.example.com/doctor.json --token " +
			"- < token.txt\n" +
			"  pasteport doctor https://cms.example.com/mcp --clients\n" +
			"  pasteport doctor https://cms.example.com/mcp " +
			"--clients=https://claude.ai/oauth/mcp-oauth-client-metadata\n" +
			"  pasteport doctor --egress\n" +
			"  pasteport doctor --egress https://claude.ai/oauth/mcp-oauth-client-metadata " +
			"--config /etc/pasteport.yaml",
		Args: func(_ *cobra.Command, args []string) error { return o.check(args) },
		PreRunE: func(*cobra.Command, []string) error {
			return table.Explain(table.Read())
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.servesDocument = cmd.Flags().Changed("certificate")
			r := &reporter{out: term.New(out), progress: term.New(errOut), asJSON: o.asJSON}
			switch {
			case o.printDocument:
				_, err := out.Write(Document(o.clientID))
				return err
			case o.egress:
				return o.runEgress(cmd.Context(), config, table.Explain, args, r)
			}
			return o.run(cmd.Context(), args[0], in, r)
		},
	}
	table.Flags(command, append([]string{"admin-addr"}, service.EgressSettings...)...)
	flags := command.Flags()
	flags.StringVar(&o.token, "token", "", "token of the site for a whole login; - reads it from standard input")
	flags.StringVar(&o.authorizationServer, "authorization-server", "",
		"origin of an authorization server on another host than URL, to which the token may go, for example "+
			"https://login.example.com")
	flags.StringToStringVar(&o.fields, "field", nil,
		"value of another field that the site asks for, as NAME=VALUE; can be repeated")
	flags.StringVar(&o.clientID, "client-id", "", "https URL where you host the client document (default: the one "+
		"that the server publishes with doctor-client, else served by this command, for a server on this computer)")
	flags.StringVar(&o.certificate, "certificate", defaultCertificate,
		"serve the client document with the certificate and key in this file; created if missing")
	flags.StringVar(&o.authorities, "ca", "", "PEM file with additional root certificates")
	flags.StringVar(&o.origin, "origin", "",
		"origin of a web page that must be able to connect, for example http://localhost:6274")
	flags.DurationVar(&o.limit, "timeout", 10*time.Second, "timeout for each response")
	flags.BoolVar(&o.asJSON, "json", false, "print the report as JSON")
	flags.BoolVar(&o.egress, "egress", false,
		"fetch the metadata documents of well-known clients, or those at the given URLs, from this computer")
	flags.StringVar(&o.clients, "clients", "", "ask the server about each well-known client with an authorization "+
		"request, or about those at the given client_ids")
	flags.Lookup("clients").NoOptDefVal = allWellKnown
	flags.BoolVar(&o.printDocument, "print-client-document", false,
		"print the client document to host at --client-id, and exit")
	return command
}

// check finds mistakes in the flags and arguments.
func (o doctorOptions) check(args []string) error {
	if o.egress {
		return o.checkEgressArgs(args)
	}
	if o.printDocument {
		if len(args) > 0 || !strings.HasPrefix(o.clientID, "https://") {
			return term.Usagef(
				"--print-client-document needs --client-id with the https URL of the document, and nothing else")
		}
		return nil
	}
	if len(args) != 1 {
		return term.Usagef("name the URL of one MCP server, for example https://cms.example.com/mcp")
	}
	endpoint, err := url.Parse(args[0])
	switch {
	case err != nil || endpoint.Host == "" || endpoint.Scheme != "https" && endpoint.Scheme != "http" ||
		endpoint.User != nil || endpoint.Fragment != "":
		return term.Usagef("invalid URL of an MCP server: write it like https://cms.example.com/mcp, without a " +
			"password and without #")
	case o.clientID != "" && !strings.HasPrefix(o.clientID, "https://"):
		return term.Usagef("--client-id %q is not https", o.clientID)
	case o.origin != "" && !isOrigin(o.origin):
		return term.Usagef(
			"--origin %q is not an origin: write it like http://localhost:6274, without a trailing slash", o.origin)
	case o.authorizationServer != "" && !isOrigin(o.authorizationServer):
		return term.Usagef("--authorization-server %q is not an origin: write it like https://login.example.com, "+
			"without a trailing slash",
			o.authorizationServer)
	case !areDocuments(o.clients):
		return term.Usagef("--clients=%s: write client_ids, which are https URLs, after the equals sign, with commas "+
			"between, or --clients alone", o.clients)
	case o.limit <= 0:
		return term.Usagef("--timeout must be positive")
	}
	return nil
}

func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && text == u.Scheme+"://"+u.Host
}

func (o doctorOptions) run(ctx context.Context, target string, in io.Reader, r *reporter) (err error) {
	endpoint, err := url.Parse(target)
	if err != nil {
		return term.Usage(err)
	}
	examined := Options{
		Endpoint:   endpoint,
		Origin:     o.origin,
		Limit:      o.limit,
		Now:        time.Now,
		Begins:     r.begin,
		Ends:       r.end,
		Fields:     o.fields,
		TokenTo:    o.authorizationServer,
		Version:    service.Version(),
		Clients:    o.knownClients(),
		AskClients: o.clients != "",
	}
	if examined.Roots, err = readAuthorities(o.authorities); err != nil {
		return err
	}
	if examined.Token, err = givenToken(ctx, o.token, in, r.progress.Out); err != nil {
		return err
	}
	if examined.Token != "" && o.authorizationServer != "" {
		r.progress.Printf("the token may go to %s\n", o.authorizationServer)
	}
	documents := clientDocuments{o: o}
	defer func() { err = errors.Join(err, documents.close()) }()
	if err := documents.choose(&examined); err != nil {
		return err
	}
	report, err := Examine(ctx, examined)
	if err != nil {
		return err
	}
	for _, found := range o.upstreamFindings(ctx, endpoint) {
		report.Add(found)
		r.end(found)
	}
	report.Next = next(report)
	return r.conclude(report)
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

// givenToken reads the token from standard input for "-", which keeps it out of the list of
// processes.
func givenToken(ctx context.Context, given string, in io.Reader, prompt io.Writer) (string, error) {
	if given != "-" {
		return given, nil
	}
	token, err := term.ReadToken(ctx, in, prompt)
	if err != nil {
		return "", term.Usage(err)
	}
	return token.Reveal(), nil
}

// readCertificate reads the certificate and key from one file, and creates the file if it is
// missing.
func readCertificate(file string) (tls.Certificate, error) {
	certificate, err := tls.LoadX509KeyPair(file, file)
	if errors.Is(err, fs.ErrNotExist) {
		return makeCertificate(file)
	}
	if err != nil {
		return certificate,
			fmt.Errorf("reading the certificate in %s: %w: name a PEM file that holds certificate and key with "+
				"--certificate", file, err)
	}
	return certificate, nil
}

// makeCertificate creates a certificate for 127.0.0.1; a server trusts it if SSL_CERT_FILE names
// the file.
func makeCertificate(file string) (tls.Certificate, error) {
	certificate, err := certificates.SelfSigned(net.IPv4(127, 0, 0, 1))
	if err != nil {
		return certificate, fmt.Errorf("making a certificate: %w", err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		return certificate, fmt.Errorf("encoding the key of the certificate: %w", err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Leaf.Raw}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return certificate, fmt.Errorf("writing the certificate: %w: name a writable file with --certificate", err)
	}
	return certificate, nil
}

// reporter prints findings as they come, or all of them as JSON at the end.
type reporter struct {
	out, progress term.Terminal
	asJSON        bool
	skipped       string // reason that was printed last
}

// begin shows the current question as progress.
func (r *reporter) begin(question string) {
	if r.progress.Colour {
		r.progress.Printf("\r\x1b[K… %s", question)
	}
}

func (r *reporter) end(f Finding) {
	r.progress.ClearLine()
	if r.asJSON || f.Status == Skipped && f.Seen == r.skipped {
		return
	}
	status := fmt.Sprintf("%-8s", f.Status)
	switch f.Status {
	case OK:
		status = r.out.Green(status)
	case Warning:
		status = r.out.Bold(status)
	case Failure:
		status = r.out.Red(status)
	case Skipped:
		r.skipped = f.Seen
	}
	r.out.Printf("%s %-22s %s\n", status, f.ID, f.Seen)
	for _, group := range f.Clients {
		r.out.Printf("         %s: %s\n", strings.Join(nonEmpty(group.Answer, group.Reason), ", "),
			strings.Join(group.Names, ", "))
	}
	if f.Mend != "" {
		r.out.Printf("         check:   %s\n         why:     %s\n         affects: %s\n         fix:     %s\n", f.Asks,
			f.Why, strings.Join(f.Breaks, "; "), f.Mend)
	}
}

// conclude prints the summary, and fails when a check has failed.
func (r *reporter) conclude(d Diagnosis) error {
	failures := d.Count(Failure)
	if r.asJSON {
		if err := term.PrintJSON(r.out.Out, d); err != nil {
			return err
		}
	} else {
		r.out.Printf("\n%d ok, %d warnings, %d failures, %d skipped\nnext: %s\n",
			d.Count(OK), d.Count(Warning), failures, d.Count(Skipped), d.Next)
	}
	if failures > 0 {
		return fmt.Errorf("%d of %d checks failed", failures, len(d.Checks))
	}
	return nil
}
