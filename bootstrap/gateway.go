package bootstrap

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pasteport/pasteport/adapters/http/mcp"
	"github.com/pasteport/pasteport/adapters/http/upstream"
	"github.com/pasteport/pasteport/adapters/outbound"
	"github.com/pasteport/pasteport/bootstrap/internal/upstreams"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Credentials towards an upstream.
const (
	CredentialHostToken = upstreams.HostToken // the token that the person pasted
	CredentialStatic    = upstreams.Static    // one secret for everybody, and signed headers that say who is calling
	CredentialNone      = upstreams.None
)

// Upstream is an MCP server elsewhere.
type Upstream struct {
	URL           string // of its MCP endpoint: https, or http on this computer and private networks
	Host          string // that it is asked under; that of URL
	Credential    string // CredentialHostToken, which needs oauth.Config.HostTokenInUse
	Secret        string // of CredentialStatic, sent as its bearer token
	SigningSecret string // of CredentialStatic, never sent: 32 bytes or more
	Headers       []string
	Patience      time.Duration // until the answer to a POST begins; 5 minutes

	Reach  outbound.Options
	Logger *slog.Logger // that of the OAuth server
}

// NewGateway protects an MCP server elsewhere, in any language; it needs WithOAuth, and reports every mistake at once. WithToolPolicy
// has no effect on it.
func NewGateway(to Upstream, options ...MCPOption) (*MCPServer, error) {
	m := new(MCPServer)
	for _, option := range options {
		option(m)
	}
	if m.authz == nil {
		return nil, errors.New("opening the gateway to an upstream: it has no OAuth server: pass WithOAuth to NewGateway")
	}
	to = to.withDefaults(m.authz.config)
	if err := to.check(m.authz.config); err != nil {
		return nil, fmt.Errorf("opening the gateway to an upstream: %w", err)
	}
	protection := m.protection()
	protection.PassedHeaders = to.Headers
	proxy, err := upstream.New(upstream.Options{
		URL: to.URL, Host: to.Host, MessagePath: mcp.MessagePath(protection.Resource), Credential: to.credential(protection),
		Headers: to.Headers, Sessions: m.authz.server.Settings().Keys, Resource: protection.Resource, Patience: to.Patience, Options: to.Reach, Logger: to.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("opening the gateway to an upstream: %w", err)
	}
	if to.Credential == CredentialHostToken {
		protection.HostTokens = m.authz.server
	}
	m.mounted = mcp.NewGateway(proxy, protection)
	return m, nil
}

func (u Upstream) withDefaults(config oauth.Config) Upstream {
	u.Credential, u.Logger = cmp.Or(u.Credential, CredentialHostToken), cmp.Or(u.Logger, config.Logger)
	u.Patience = cmp.Or(u.Patience, upstreams.DefaultPatience)
	return u
}

// check holds a host to what the command line is held to.
func (u Upstream) check(config oauth.Config) error {
	if u.Credential == CredentialHostToken && !config.HostTokenInUse {
		return oauth.NewMistake("%s is %q: set %s in the oauth.Config, so that access tokens can open the host token",
			oauth.Field("Credential"), u.Credential, oauth.Field("HostTokenInUse"))
	}
	terms := upstreams.Terms{Credential: u.Credential, Secret: u.Secret, SigningSecret: u.SigningSecret, Host: u.Host, Headers: u.Headers, Patience: u.Patience}
	err := terms.Check()
	if reason := (outbound.Options{AllowHTTP: true}).CheckURL(u.URL); reason != nil {
		err = errors.Join(oauth.NewMistake("%s: %s", oauth.Field("URL"), reason), err)
	}
	return err
}

func (u Upstream) credential(protection mcp.Options) upstream.Credential {
	switch u.Credential {
	case CredentialStatic:
		return upstream.Static(u.Secret, upstream.Signer{Key: []byte(u.SigningSecret), Now: protection.Now}, protection.Resource)
	case CredentialNone:
		return upstream.Nobody()
	}
	return upstream.HostToken()
}
