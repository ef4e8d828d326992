package bootstrap

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
)

const (
	defaultAddr    = "127.0.0.1:8080"
	defaultDataDir = "pasteport-data"
	tokenVariable  = "PASTEPORT_DEMO_TOKEN"
)

var errNoIssuer = errors.New("nobody has said under which https address clients reach this service: add --issuer https://…, " +
	"or --dev and an --addr of this computer to try it here")

func newServe(out, errOut io.Writer) *cobra.Command {
	config := ServiceConfig{Logger: logTo(errOut)}
	var addr, logo string
	serve := &cobra.Command{
		Use: "serve", Short: "Run the demo site as a service", Args: noArguments,
		Long: "Run the demo site, a small content-management site with Pasteport built in, until it is told to stop (SIGTERM or Ctrl-C).\n" +
			"Its editor token is taken from " + tokenVariable + ", or made on the first start and printed once.",
		Example: "  pasteport serve --dev\n" +
			"  pasteport serve --addr 127.0.0.1:9000 --issuer https://cms.example.com --data /var/lib/pasteport",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := readLogo(&config.Appearance, logo); err != nil {
				return err
			}
			listener, err := listen(addr)
			if err != nil {
				return err
			}
			config.EditorToken = os.Getenv(tokenVariable)
			if config.Issuer == "" {
				config.Issuer = "http://" + listener.Addr().String()
				if !config.Development || !listener.Addr().(*net.TCPAddr).IP.IsLoopback() {
					return errors.Join(errNoIssuer, listener.Close())
				}
			}
			return serveUntilStopped(cmd, config, listener, out)
		},
	}
	flags := serve.Flags()
	flags.StringVar(&addr, "addr", defaultAddr, "address to listen on")
	flags.StringVar(&config.Issuer, "issuer", "", "public https URL, as clients see it (with --dev default http:// and the address)")
	flags.StringVar(&config.DataDir, "data", defaultDataDir, "folder for the two databases")
	flags.DurationVar(&config.AccessTokenTTL, "access-token-ttl", time.Hour, "how long an access token lives, 1m to 24h")
	flags.DurationVar(&config.AuthCodeTTL, "auth-code-ttl", 5*time.Minute, "how long an authorization code lives, 10s to 10m")
	flags.DurationVar(&config.RecheckEvery, "recheck-every", 0, "ask the site about tokens during use, at most this often; 0 asks at refreshes only")
	flags.BoolVar(&config.Development, "dev", false, "development: http on this computer, and client metadata from it")
	flags.BoolVar(&config.PrivateKeyJWT, "private-key-jwt", false, "offer clients to prove by signed assertions who they are")
	flags.StringVar(&config.Appearance.Name, "site-name", "", "what the pages call the site (default the issuer's host)")
	flags.StringVar(&config.Appearance.Accent, "accent", "", "colour of buttons and links, for example #0b5a4a")
	flags.StringVar(&logo, "logo", "", "file with the site's logo: PNG, JPEG, WebP or SVG of at most 12 KiB")
	flags.StringVar(&config.Appearance.TokenHelp, "token-help", "", "address of the page on which people find their token")
	return serve
}

func readLogo(look *Appearance, file string) (err error) {
	if file == "" {
		return nil
	}
	if look.Logo, err = os.ReadFile(file); err != nil {
		return fmt.Errorf("reading the logo: %w: name a picture with --logo", err)
	}
	return nil
}

func serveUntilStopped(cmd *cobra.Command, config ServiceConfig, listener net.Listener, out io.Writer) error {
	service, err := OpenService(cmd.Context(), config)
	if err != nil {
		_ = listener.Close()
		return err
	}
	if service.NewToken != "" {
		_, _ = fmt.Fprintf(out, "demo token: %s\n", service.NewToken)
	}
	_, _ = fmt.Fprintf(out, "serving %s on %s, data in %s\nnext: connect an MCP client to %s\n",
		config.Issuer, listener.Addr(), config.DataDir, service.Authz.server.Settings().Resource)
	return errors.Join(service.Serve(cmd.Context(), listener), service.Close())
}
