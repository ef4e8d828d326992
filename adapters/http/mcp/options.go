package mcp

import (
	"context"
	"log/slog"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/http/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/http/mcp/replica"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
)

const (
	defaultMaxBody = 4 << 20
	defaultBodies  = 256 << 20
)

// Authorization is what the guard needs of the OAuth layer.
type Authorization interface {
	// Authenticate refuses with oauth.InvalidToken; any other error is an outage.
	Authenticate(ctx context.Context, bearer string, resource oauth.Resource) (oauth.Caller, error)
}

// HostTokens is what a gateway needs of the OAuth layer that hands people's own tokens to its upstream.
type HostTokens interface {
	// AuthenticateWithHostToken is Authenticate that also opens the host token.
	AuthenticateWithHostToken(ctx context.Context, bearer string, resource oauth.Resource) (oauth.Caller, oauth.HostToken, error)
	// VerifyAfterRefusal asks the site about the host token of the access token, after the upstream has answered 401. It returns nil
	// when the host token is good, oauth.InvalidToken when it was not and the grant has ended, any other error when the site cannot tell.
	VerifyAfterRefusal(ctx context.Context, bearer string, resource oauth.Resource) error
}

// ToolPolicy tells whether the caller may know and call a tool.
type ToolPolicy func(caller oauth.Caller, tool string) bool

// Options is how a server is protected. Every zero value means the default in its comment.
type Options struct {
	Issuer        string               // the authorization server's URL
	Resource      oauth.Resource       // the URL of this endpoint; its path is where Mount puts it
	ResourceName  string               // shown to people; left out of the metadata
	Further       bool                 // not the first server of its issuer: no metadata at the root address (U1)
	Scopes        oauth.ScopeCatalogue // what can be asked for; its defaults are named in challenges
	Authorization Authorization
	Keys          seal.KeyRing        // bind sessions to their owners, and seal what replicas tell each other
	HostTokens    HostTokens          // of a gateway; nil when its upstream gets no host token
	Follow        echo.MiddlewareFunc // sees every request for metadata; none

	Begin func(c echo.Context) context.Context // under which a request reaches its steps; its own

	AllowedOrigins []string // browser origins besides those of Issuer and Resource
	AllowedHosts   []string // further names of a server on this computer; one without a port holds with any
	PassedHeaders  []string // further headers that pages may send, because the upstream of a gateway gets them

	ToolPolicy ToolPolicy                     // nil allows every tool to every caller
	ToolScopes func(tool string) oauth.Scopes // scopes that calling a tool needs; the catalogue's defaults

	Limits         oauth.Limits        // MaxSessions and MaxSessionsPerPerson, of this server in this process
	Limited        oauth.LimitObserver // none
	MaxBody        int64               // in bytes; 4 MiB
	Bodies         *jsonrpc.BodyMemory // shared by the servers of a process; 256 MiB for this one
	SessionTimeout time.Duration       // without a POST; 1 hour

	Bus replica.Bus // to the other replicas of this server; nil when there are none

	Now    func() time.Time // time.Now
	Logger *slog.Logger     // silent
}

func (o Options) withDefaults() Options {
	o.Limits = o.Limits.WithDefaults()
	if o.MaxBody == 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.Bodies == nil {
		o.Bodies = jsonrpc.NewBodyMemory(defaultBodies)
	}
	if o.SessionTimeout == 0 {
		o.SessionTimeout = time.Hour
	}
	if o.ToolScopes == nil {
		o.ToolScopes = func(string) oauth.Scopes { return o.Scopes.Defaults() }
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
