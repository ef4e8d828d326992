package guard

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/peers"
	"github.com/pasteport/pasteport/adapters/mcp/response"
	"github.com/pasteport/pasteport/domain/audit"
	"github.com/pasteport/pasteport/domain/oauth"
)

const defaultBodies = 256 << 20 // bytes

// Authorization checks access tokens.
type Authorization = response.Authorization

// Verify checks the access token of an identity, and sets its caller.
type Verify func(ctx context.Context, identity *response.Identity) error

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
	Verify         Verify                   // the default is Authorization
	Follow         echo.MiddlewareFunc      // for requests of metadata; nil for none

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
	// they were then; nil for all.
	RecordTools RecordTools

	Calls oauth.RateLimit // counts calls for CallsPerMinute; nil for no limit

	// MaxSessions and MaxSessionsPerPerson of this server in this process, and CallsPerMinute
	Limits         oauth.Limits
	Limited        oauth.LimitObserver // nil for none
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
func (o Options) Responses() response.Options {
	return response.Options{
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
	if o.Bodies == nil {
		o.Bodies = message.NewBodyMemory(defaultBodies)
	}
	if o.ToolScopes == nil {
		o.ToolScopes = func(string) oauth.Scopes { return o.Scopes.Defaults() }
	}
	if o.Verify == nil {
		o.Verify = func(ctx context.Context, identity *response.Identity) (err error) {
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
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
