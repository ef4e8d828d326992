package service

import (
	"cmp"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
)

func newConfig(out io.Writer) *cobra.Command {
	config := defaultConfig()
	var table *settings.Table
	command := &cobra.Command{
		Use: "config", Short: "Show the settings that would hold, and check them", Args: noArguments,
		Long: "Print every setting with its value and where that comes from: a flag, the environment, the file or the default. Secrets are\n" +
			"hidden. It fails, with every wrong setting at once, when \"pasteport serve\" would refuse them; it takes no address and opens no database.",
		Example: "  pasteport config --config /etc/pasteport.yaml\n" +
			"  pasteport config example >pasteport.yaml\n" +
			"  pasteport config schema >pasteport.schema.json",
		RunE: func(*cobra.Command, []string) error {
			config.settle()
			return table.WriteEffective(out)
		},
	}
	table = config.addSettings(command)
	command.PreRunE = func(*cobra.Command, []string) error { return config.load(table, nil) }
	command.AddCommand(
		newConfigPart("example", "Print a file with every setting explained", (*settings.Table).WriteExample, out),
		newConfigPart("schema", "Print the JSON schema of the file, for editors", (*settings.Table).WriteSchema, out),
		newConfigPart("reference", "Print a table of all settings in Markdown", (*settings.Table).WriteReference, out),
	)
	return command
}

func newConfigPart(name, short string, write func(*settings.Table, io.Writer) error, out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: noArguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error { return write(defaultConfig().table(), out) },
	}
}

// addSettings lets a command be told the named settings, or all when none is named; it reads them before it runs.
func (c *Config) addSettings(command *cobra.Command, names ...string) *settings.Table {
	table := c.table()
	table.Flags(command, names...)
	command.PreRunE = func(*cobra.Command, []string) error { return table.Explain(table.Read()) }
	return table
}

// addServiceSettings lets a command that serves be told everything but what is for the other one; it refuses what mode finds.
func (c *Config) addServiceSettings(command *cobra.Command, mode func() error, others []string) {
	table := c.table()
	table.Flags(command, table.NamesBut(others)...)
	command.PreRunE = func(*cobra.Command, []string) error { return c.load(table, mode) }
}

var errNoIssuer = errors.New("nobody has said under which https address clients reach this service: add --issuer https://…, " +
	"or --dev and an --addr of this computer to try it here")

// load reads the settings and reports every mistake at once, before anything is opened; mode finds further ones.
func (c *Config) load(table *settings.Table, mode func() error) error {
	err := table.Read()
	if !table.Unread() {
		err = errors.Join(err, c.readLogo(), c.mistakes())
		if mode != nil {
			err = errors.Join(err, mode())
		}
	}
	return table.Explain(err)
}

// mistakes also finds those of a service that gets its issuer only when it listens.
func (c Config) mistakes() error {
	addr, err := net.ResolveTCPAddr("tcp", c.Addr)
	if err != nil {
		err = oauth.NewMistake("%s is %q, which is no address: write host:port, for example %s", oauth.Field("Addr"), c.Addr, defaultAddr)
	}
	switch {
	case c.Issuer != "":
	case err == nil && c.Development && addr.IP.IsLoopback():
		c.Issuer = c.ownIssuer(addr)
	default:
		err = errors.Join(err, errNoIssuer)
		c.Issuer, c.Development = "https://cms.example.com", false // stands in, to find the other mistakes
	}
	return errors.Join(err, c.checkAdminAddr(), c.checkDemoToken(), c.check())
}

func (c Config) checkAdminAddr() error {
	if c.AdminAddr == "" || c.AdminAddr == adminOff {
		return nil
	}
	if _, err := net.ResolveTCPAddr("tcp", c.AdminAddr); err != nil {
		return oauth.NewMistake("%s is %q, which is no address: write host:port, for example %s, or %s", oauth.Field("AdminAddr"), c.AdminAddr, defaultAdminAddr, adminOff)
	}
	return nil
}

func (c Config) checkDemoToken() error {
	if err := demosite.CheckToken(c.EditorToken); err != nil {
		return oauth.NewMistake("%s cannot be taken: %s", oauth.Field("DemoToken"), err)
	}
	return verifierField{"DemoToken", c.EditorToken != "", false, []string{VerifierSite}}.check(c.Verification.chosen(c.isGateway()))
}

// ownIssuer is the issuer of a service that nobody but this computer reaches. It has the name localhost where addr has, because clients
// compare URLs by their text, and the port that was taken.
func (c Config) ownIssuer(taken net.Addr) string {
	authority := taken.String()
	_, port, err := net.SplitHostPort(authority)
	if name, _, _ := net.SplitHostPort(c.Addr); err == nil && strings.EqualFold(name, "localhost") {
		authority = net.JoinHostPort("localhost", port)
	}
	if c.TLS.CertFile != "" {
		return "https://" + authority
	}
	return "http://" + authority
}

// settle fills in what follows from other settings. Nothing follows from an address whose port is chosen later.
func (c *Config) settle() {
	resource := c.Resource
	if addr, err := net.ResolveTCPAddr("tcp", c.Addr); c.Issuer == "" && err == nil && addr.Port != 0 {
		c.Issuer = c.ownIssuer(addr)
	}
	c.Verification.Verifier = c.Verification.chosen(c.isGateway())
	c.Config = c.Gateway.resources(c.Config, func(string) oauth.BearerVerifier { return nil }).WithDefaults()
	if c.Issuer == "" {
		c.Resource = resource
	}
	if issuer, err := url.Parse(c.Issuer); err == nil {
		c.Appearance.Name = cmp.Or(c.Appearance.Name, issuer.Host)
	}
	c.Appearance.Accent = cmp.Or(c.Appearance.Accent, defaultAccent)
}
