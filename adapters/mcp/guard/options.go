package guard

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/peers"
	"github.com/pasteport/pasteport/adapters/mcp/stream"
	"github.com/pasteport/pasteport/domain/audit"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/quota"
	"github.com/pasteport/pasteport/domain/toolset"
)

const defaultBodies = 256 << 20 // bytes

// Authorization checks access tokens.
type Authorization = stream.Authorization

// Options configure a Guard. Authorization is required.
type Options struct {
	Issuer       string         // URL of the authorization server
	Resource     oauth.Resource // URL of the MCP endpoint
	ResourceName string         // for people; "" for none in the metadata
	Links        oauth.Links    // for the metadata
	// Do not mount the metadata at the root path too: only the first server of an issuer has it
	// there.
	NoRootMetadata bool
	Scopes         oauth.ScopeCatalogue // that clients can request; challenges name its defaults
	Authorization  Authorization
	HostTokens     bool                     // accepts the site's own tokens, which may have other characters than ours
	TakeHostToken  func(http.Header) string // removes one from another header than a bearer token; nil for none
	// Verify checks the access token of an identity, and sets its caller; nil for Authorization.
	Verify func(ctx context.Context, identity *stream.Identity) error
	Follow echo.MiddlewareFunc // for requests of metadata; nil for none

	Begin func(c echo.Context) context.Context // returns the context of a request; nil for its own
	// Welcome writes a page with the status, for a person who opens the endpoint in a browser; nil
	// for none.
	Welcome func(c echo.Context, status int) error

	AllowedOrigins []string // browser origins besides those of Issuer and Resource
	// Host headers besides that of Resource, for a server on loopback; a name without a port allows
	// every port.
	AllowedHosts  []string
	PassedHeaders []string // request headers that browsers may send besides those of MCP

	Parameter func(name string) bool // reports whether a query parameter has an effect; nil for all

	Tools      Policy                         // nil allows every tool to every caller, as the next two do
	Prompts    Policy                         // by name
	Resources  Policy                         // by URI, and templates by the template
	ToolScopes func(tool string) oauth.Scopes // scopes that a call of the tool needs; nil for the defaults of Scopes
	// Replaces ToolScopes if the scopes depend on the arguments; nil for none. The arguments are
	// nil for a call without any, and their numbers are of type json.Number. An empty result of
	// either means the defaults of Scopes.
	CallScopes func(tool string, arguments map[string]any) oauth.Scopes

	// RecordTools lets a client see and call only the tools of its first list, while they are as
	// they were then; nil for all. It records a list that a client of a grant gets, and returns
	// which of them it may see.
	RecordTools func(ctx context.Context, grant string, list toolset.List) (toolset.Pins, error)

	Calls quota.RateLimit // counts calls for CallsPerMinute; nil for no limit

	// MaxSessions and MaxSessionsPerPerson of this server in this process, and CallsPerMinute
	Limits         oauth.Limits
	Limited        quota.Observer      // nil for none
	MaxRequestBody int64               // in bytes; 0 for DefaultRequestBody
	Bodies         *message.BodyMemory // shared by the servers of a process; nil for a separate limit of 256 MiB

	Audit       audit.Recorder              // nil for none
	AuditReady  func() error                // an error while calls cannot be recorded, which then get 503; nil for none
	ClientLabel func(oauth.ClientID) string // a short name of a client, for the audit

	Peers *peers.Peers // for sessions of other replicas of a Backend with sessions in this process; nil for none

	Now    func() time.Time // nil for time.Now
	Logger *slog.Logger     // nil for none
}

// HasPolicy reports whether responses have to be filtered.
func (o Options) HasPolicy() bool {
	return o.Tools != nil || o.Prompts != nil || o.Resources != nil || o.RecordTools != nil
}

// Responses returns the options of the registry of a Backend.
func (o Options) Responses() stream.Options {
	return stream.Options{
		Authorization: o.Authorization,
		Resource:      o.Resource,
		Limits:        o.Limits,
		Limited:       o.Limited,
		Now:           o.Now,
		Logger:        o.Logger,
	}
}

// WithDefaults returns the options with their defaults.
func (o Options) WithDefaults() Options {
	o.Limits = o.Limits.WithDefaults()
	o.MaxRequestBody = cmp.Or(o.MaxRequestBody, DefaultRequestBody)
	o.Bodies = cmp.Or(o.Bodies, message.NewBodyMemory(defaultBodies))
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.ToolScopes == nil {
		o.ToolScopes = func(string) oauth.Scopes { return o.Scopes.Defaults() }
	}
	if o.Verify == nil {
		o.Verify = func(ctx context.Context, identity *stream.Identity) (err error) {
			identity.Caller, err = o.Authorization.Authenticate(ctx, identity.Token, o.Resource)
			return err
		}
	}
	if o.TakeHostToken == nil {
		o.TakeHostToken = func(http.Header) string { return "" }
	}
	if o.Follow == nil {
		o.Follow = func(next echo.HandlerFunc) echo.HandlerFunc { return next }
	}
	if o.Begin == nil {
		o.Begin = func(c echo.Context) context.Context { return c.Request().Context() }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// LoopbackOrigins is the entry of Options.AllowedOrigins for the web pages of the person's own
// computer.
const LoopbackOrigins = "loopback"

// The default and the bounds of Options.MaxRequestBody.
const (
	DefaultRequestBody = 4 << 20
	LeastRequestBody   = 64 << 10
	MostRequestBody    = 1 << 30
)

// Check returns an oauth.Mistake for each allowed origin that no browser sends and each allowed
// host that no request can name, because such entries never match, and one for a MaxRequestBody out
// of bounds.
func (o Options) Check() error {
	var mistakes []error
	for _, origin := range o.AllowedOrigins {
		if err := checkOrigin(origin); err != nil {
			mistakes = append(mistakes, oauth.NewMistake("WithAllowedOrigins", "has %q: %s", origin, err))
		}
	}
	for _, host := range o.AllowedHosts {
		if err := CheckHost(host); err != nil {
			mistakes = append(mistakes, oauth.NewMistake("WithAllowedHosts", "has %q: %s", host, err))
		}
	}
	if size := o.MaxRequestBody; size != 0 && (size < LeastRequestBody || size > MostRequestBody) {
		mistakes = append(mistakes, oauth.NewMistake("WithMaxRequestBody", "is %d bytes: choose %d KiB to %d KiB", size,
			LeastRequestBody>>10, MostRequestBody>>10))
	}
	return errors.Join(mistakes...)
}

func checkOrigin(origin string) error {
	u, err := url.Parse(origin)
	if origin == LoopbackOrigins || err == nil && u.Scheme != "" && u.Host != "" && sentOrigin(u) == origin &&
		!strings.Contains(origin, "*") && !strings.ContainsFunc(origin, isUnprintable) {
		return nil
	}
	return errors.New("write scheme://host or scheme://host:port for one origin as browsers send it: in ASCII " +
		"(xn--…) and lower case, without path and default port; or loopback for every port of this computer")
}

// sentOrigin returns the origin of a page at the URL, as browsers send it.
func sentOrigin(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(strings.TrimSuffix(u.Host, ":"))
	return scheme + "://" + strings.TrimSuffix(host, map[string]string{"http": ":80", "https": ":443"}[scheme])
}

// CheckHost returns an error when no request can name the host.
func CheckHost(host string) error {
	if host == "" || strings.ContainsAny(host, "*/@?#") || strings.ContainsFunc(host, isUnprintable) {
		return errors.New("write host or host:port of each host, without scheme, path and pattern")
	}
	return nil
}

func isUnprintable(r rune) bool { return r <= ' ' || r > '~' }
