package mcp

import (
	"context"
	"log/slog"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/mcp/replica"
	"github.com/pasteport/pasteport/adapters/mcp/response"
	"github.com/pasteport/pasteport/domain/audit"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
)

const (
	defaultMaxBody = 4 << 20
	defaultBodies  = 256 << 20
)

// Authorization checks access tokens.
type Authorization = response.Authorization

// HostTokens checks access tokens for a gateway that sends host tokens to its upstream.
type HostTokens interface {
	// AuthenticateWithHostToken is Authorization.Authenticate, and also returns the unsealed host
	// token.
	AuthenticateWithHostToken(ctx context.Context, bearer string, resource oauth.Resource) (oauth.Caller,
		oauth.HostToken, error)
	// VerifyAfterRefusal verifies the host token of the access token again, after the upstream has
	// answered 401. It returns nil for a valid host token, and oauth.InvalidToken for an invalid
	// one, whose grant it has ended. Any other error is an outage of the verifier.
	VerifyAfterRefusal(ctx context.Context, bearer string, resource oauth.Resource) error
}

// Policy reports whether the caller may see and use a tool, a prompt or a resource. For NewGateway
// it has to deny other spellings of a name that it denies.
type Policy func(caller oauth.Caller, name string) bool

// Options configure a Server. Authorization is required.
type Options struct {
	Issuer       string         // URL of the authorization server
	Resource     oauth.Resource // URL of the MCP endpoint
	ResourceName string         // for people; "" for none in the metadata
	// Do not mount the metadata at the root path too: only the first server of an issuer has it
	// there.
	NoRootMetadata bool
	Scopes         oauth.ScopeCatalogue // that clients can request; challenges name its defaults
	Authorization  Authorization
	Keys           seal.KeyRing        // bind sessions to their owners, and seal messages between replicas
	HostTokens     HostTokens          // of a gateway that sends host tokens; nil for none
	Follow         echo.MiddlewareFunc // for requests of metadata; nil for none

	Begin func(c echo.Context) context.Context // returns the context of a request; nil for its own

	AllowedOrigins []string // browser origins besides those of Issuer and Resource
	// Host headers besides that of Resource, for a server on loopback; a name without a port allows
	// every port.
	AllowedHosts  []string
	PassedHeaders []string // request headers that browsers may send besides those of MCP, for the upstream of a gateway

	Tools      Policy                         // nil allows every tool to every caller, as the next two do
	Prompts    Policy                         // by name
	Resources  Policy                         // by URI, and templates by the template
	ToolScopes func(tool string) oauth.Scopes // scopes that a call of the tool needs; nil for the defaults of Scopes

	Limits  oauth.Limits        // MaxSessions and MaxSessionsPerPerson, of this server in this process
	Limited oauth.LimitObserver // nil for none
	// The same of the streams of a gateway with sessions in this process; the zero value for
	// Limits.
	StreamLimits   oauth.Limits
	MaxBody        int64               // in bytes; 0 for 4 MiB
	Bodies         *jsonrpc.BodyMemory // shared by the servers of a process; nil for a separate limit of 256 MiB
	SessionTimeout time.Duration       // without a request, open call or listening client; 0 for 1 hour

	Audit       audit.Recorder              // nil for none
	ClientLabel func(oauth.ClientID) string // a short name of a client, for the audit

	Bus replica.Bus // to the other replicas of this server; nil for none

	Now    func() time.Time // nil for time.Now
	Logger *slog.Logger     // nil for none
}

// HasPolicy reports whether responses have to be filtered.
func (o Options) HasPolicy() bool { return o.Tools != nil || o.Prompts != nil || o.Resources != nil }

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
