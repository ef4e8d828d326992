package bootstrap

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/cimd"
	"github.com/pasteport/pasteport/adapters/http/forwarded"
	"github.com/pasteport/pasteport/adapters/mcp/guard"
	"github.com/pasteport/pasteport/adapters/mcp/peers"
	"github.com/pasteport/pasteport/domain/access"
	"github.com/pasteport/pasteport/domain/audit"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
	"github.com/pasteport/pasteport/domain/quota"
)

// OAuthOption configures an OAuthServer.
type OAuthOption func(*oauthOptions)

type oauthOptions struct {
	clients    client.Directory
	metadata   cimd.Options
	roots      *x509.CertPool
	documents  string // folder
	appearance Appearance

	decided       func(event string)
	limited       quota.Observer
	sweepInterval time.Duration
	wrong         []error
}

func choose(options []OAuthOption) oauthOptions {
	chosen := oauthOptions{sweepInterval: sweepInterval}
	apply(options, &chosen, &chosen.wrong)
	return chosen
}

// apply calls the options, and adds a mistake for each that is nil.
func apply[T any, O ~func(*T)](options []O, to *T, wrong *[]error) {
	for i, option := range options {
		if option == nil {
			*wrong = append(*wrong, fmt.Errorf("option %d is nil: leave it out", i+1))
			continue
		}
		option(to)
	}
}

// WithClientDirectory replaces the directory that fetches clients from their metadata documents
// (CIMD). If it is a client.KeyDirectory, it also provides their keys.
func WithClientDirectory(clients client.Directory) OAuthOption {
	return func(o *oauthOptions) { o.clients = clients }
}

// WithMetadata sets how metadata documents of clients are fetched. NewOAuthServer reports a wrong
// Proxy.
func WithMetadata(options cimd.Options) OAuthOption {
	return func(o *oauthOptions) {
		o.metadata = options
		o.wrong = append(o.wrong, options.Check())
	}
}

// WithRootCAs sets the certificate authorities for fetching metadata documents; the default is
// those of the system.
func WithRootCAs(roots *x509.CertPool) OAuthOption {
	return func(o *oauthOptions) { o.roots = roots }
}

// WithClientDocuments names a folder of metadata documents, one in each .json file, that are used
// without a fetch. The server reads the folder again when a file has changed. NewOAuthServer
// reports a folder or file that is not valid.
func WithClientDocuments(folder string) OAuthOption {
	return func(o *oauthOptions) { o.documents = folder }
}

// WithDecisions calls count with the name of each audit event.
func WithDecisions(count func(event string)) OAuthOption {
	return func(o *oauthOptions) { o.decided = count }
}

// WithLimitObserver calls observe for each request that a limit of the Config slows or refuses, and
// for each session or connection that a limit ends.
func WithLimitObserver(observe quota.Observer) OAuthOption {
	return func(o *oauthOptions) { o.limited = observe }
}

// MCPOption configures an MCPServer.
type MCPOption func(*MCPServer)

// WithOAuth sets the authorization server. Register, NewGateway and Guard need it.
func WithOAuth(authz *OAuthServer) MCPOption {
	return func(m *MCPServer) { m.authz, m.nilOAuth = authz, authz == nil }
}

// WithResource sets which resource of the Config this server is, by its URL; the default is the
// first. Register reports an unknown one.
func WithResource(uri string) MCPOption { return func(m *MCPServer) { m.resource = uri } }

// WithToolPolicy sets which tools a caller may list and call, usually by roles. A tool that is not
// allowed is an unknown tool to the caller. For NewGateway and Guard, so is a name of more than 128
// characters or with any besides A-Z a-z 0-9 _ . / -; compare with strings.ToLower if the server
// ignores case. Both filter the lists in responses, so a response that is compressed becomes an
// error, and so does a message of more than 16 MiB.
func WithToolPolicy(allows func(caller oauth.Caller, tool string) bool) MCPOption {
	return func(m *MCPServer) { m.options.Tools = allows }
}

// WithPromptPolicy is WithToolPolicy for prompts: to list, get and complete them.
func WithPromptPolicy(allows func(caller oauth.Caller, prompt string) bool) MCPOption {
	return func(m *MCPServer) { m.options.Prompts = allows }
}

// WithResourcePolicy is WithToolPolicy for resources: to list, read, subscribe to and complete
// them. A resource template is listed and completed if its text is allowed, such as
// "file:///{path}"; a resource is read if its own URI is. Compare with FoldResourceURI, because a
// server may take several URIs for one resource. A URI that parsers read in different ways is
// denied without a call of allows: one with percent-encoding, a backslash, white space, control
// characters, dot segments, a user or another URI in it.
func WithResourcePolicy(allows func(caller oauth.Caller, uri string) bool) MCPOption {
	if allows == nil {
		return func(m *MCPServer) { m.options.Resources = nil }
	}
	permits := func(caller oauth.Caller, name string) bool {
		_, ok := access.FoldURI(name)
		return ok && allows(caller, name)
	}
	return func(m *MCPServer) { m.options.Resources = permits }
}

// ToolScopes returns the scopes that a call of a tool needs, by the name of the tool, or also by
// the arguments of the call. The arguments are nil for a call without any, and their numbers have
// the type json.Number. Their names are as the client writes them; if the server ignores case, the
// function has to ignore it, too.
type ToolScopes interface {
	func(tool string) oauth.Scopes | func(tool string, arguments map[string]any) oauth.Scopes
}

// WithToolScopes sets the scopes that a call of a tool needs, instead of the DefaultScopes of the
// oauth.Config. An empty result means the DefaultScopes. A client without the scopes gets 403
// insufficient_scope and can request them. Lists of tools do not depend on scopes, so a tool is
// listed although some of its calls, or all, need another scope. Names are as in WithToolPolicy.
func WithToolScopes[F ToolScopes](needs F) MCPOption {
	return func(m *MCPServer) {
		m.options.ToolScopes, m.options.CallScopes = nil, nil
		switch needs := any(needs).(type) {
		case func(tool string) oauth.Scopes:
			m.options.ToolScopes = needs
		case func(tool string, arguments map[string]any) oauth.Scopes:
			m.options.CallScopes = needs
		}
	}
}

// FoldResourceURI returns a URI in lower case and without query and fragment, so that URIs that a
// server may take for the same resource are equal. Use it only to compare. It returns "" for a URI
// that WithResourcePolicy denies.
func FoldResourceURI(uri string) string {
	folded, ok := access.FoldURI(uri)
	if !ok {
		return ""
	}
	return access.WithoutQuery(folded)
}

// WithPeers lets every replica of this MCP server answer every request, also one for a session of
// another replica. The others reach this one at the address, http://host:port or https://host:port
// in a private network. The address must be this replica's own, not that of a load balancer, and
// lead to the same handler as the public URL. All replicas need the same server secret. Tools in a
// session then see only these headers of a request: Accept, Accept-Language, Content-Type,
// Last-Event-Id, Traceparent, Tracestate, User-Agent, X-Request-Id and those of MCP. In a gateway,
// only a program needs WithPeers, because an upstream at a URL keeps the sessions itself.
func WithPeers(address string) MCPOption {
	return func(m *MCPServer) {
		m.address = address
		if err := peers.Check(address); err != nil {
			m.wrongOptions = append(m.wrongOptions, fmt.Errorf("WithPeers is %q: %w", address, err))
		}
	}
}

// WithAudit calls record once for each request of an authenticated client, after its outcome is
// known: who called which tool of which server, with a digest of the arguments. Pings and
// notifications are not calls. record runs in the goroutine of the call. audit.Open in
// adapters/audit returns a file whose Record can be used here; Guard and NewGateway read outcomes
// from the responses that pass.
func WithAudit(record audit.Recorder) MCPOption {
	return func(m *MCPServer) { m.options.Audit = record }
}

// WithAuditReady sets a function that returns an error while calls cannot be recorded, such as
// Ready of an audit.File. Calls then get 503.
func WithAuditReady(ready func() error) MCPOption {
	return func(m *MCPServer) { m.options.AuditReady = ready }
}

// WithAllowedOrigins allows web pages of other origins (scheme://host or scheme://host:port) to
// call the MCP endpoint. LoopbackOrigins allows the pages of the person's own computer, for
// development. Register reports an origin that no browser sends.
func WithAllowedOrigins(origins ...string) MCPOption {
	return func(m *MCPServer) { m.options.AllowedOrigins = origins }
}

// LoopbackOrigins is the entry of WithAllowedOrigins for the web pages of the person's own
// computer, with http or https and on any port.
const LoopbackOrigins = guard.LoopbackOrigins

// WithAllowedHosts allows more names in the Host header of a server on a loopback address; a name
// without a port allows every port. A public server accepts every name.
func WithAllowedHosts(hosts ...string) MCPOption {
	return func(m *MCPServer) { m.options.AllowedHosts = hosts }
}

// WithIPExtractor sets how Handler finds the client's address, for example with BehindProxies. It
// has no effect on Register, which uses the IPExtractor of the site's Echo and returns an error if
// that is missing.
func WithIPExtractor(addressOf func(*http.Request) string) MCPOption {
	return func(m *MCPServer) { m.addressOf = addressOf }
}

// BehindProxies returns an IPExtractor for the site's Echo. It reads the client's address from
// X-Forwarded-For, or from Forwarded (RFC 7239) if the former is absent, and trusts the entries of
// proxies in these networks. Unlike Echo's own it reads addresses with ports, and it warns once
// about an invalid entry. Limits count by this address, so the proxies must not forward the
// client's own value of the header. A nil logger is slog.Default().
func BehindProxies(logger *slog.Logger, networks ...netip.Prefix) echo.IPExtractor {
	return forwarded.Extractor{Proxies: networks, Logger: logger}.IPExtractor()
}

// WithMaxRequestBody limits the body of a request in bytes; the default, also for 0, is 4 MiB. The
// bodies of all concurrent requests to the MCP servers of an OAuthServer may take an eighth of the
// memory limit of the process, and those of one subject a quarter of that.
func WithMaxRequestBody(bytes int64) MCPOption {
	return func(m *MCPServer) { m.options.MaxRequestBody = bytes }
}

// resourceIndex returns the index of this server's resource in the Config, -1 if it is unknown.
func (m *MCPServer) resourceIndex() int {
	if m.resource == "" {
		return 0
	}
	return slices.IndexFunc(m.authz.Resources(), func(one oauth.ProtectedResource) bool {
		return one.Resource.String() == m.resource
	})
}

// MaskTokens returns a logger that replaces tokens, codes and client secrets of Pasteport by their
// kinds. NewOAuthServer does so with the logger of its Config; use it for the log of your requests,
// whose paths and agents clients choose.
func MaskTokens(logger *slog.Logger) *slog.Logger {
	if _, masks := logger.Handler().(maskingHandler); masks {
		return logger
	}
	return slog.New(maskingHandler{logger.Handler()})
}

type maskingHandler struct{ slog.Handler }

func (h maskingHandler) Handle(ctx context.Context, record slog.Record) error {
	masked := slog.NewRecord(record.Time, record.Level, oauth.MaskTokens(record.Message), record.PC)
	record.Attrs(func(attribute slog.Attr) bool {
		masked.AddAttrs(maskAll(attribute)...)
		return true
	})
	return h.Handler.Handle(ctx, masked)
}

func (h maskingHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return maskingHandler{h.Handler.WithAttrs(maskAll(attributes...))}
}

func (h maskingHandler) WithGroup(name string) slog.Handler {
	return maskingHandler{h.Handler.WithGroup(name)}
}

func maskAll(attributes ...slog.Attr) []slog.Attr {
	masked := make([]slog.Attr, 0, len(attributes))
	for _, attribute := range attributes {
		value := attribute.Value.Resolve()
		switch value.Kind() {
		case slog.KindGroup:
			value = slog.GroupValue(maskAll(value.Group()...)...)
		case slog.KindString, slog.KindAny: // such as an error, the value of a panic, or bytes
			text := fmt.Sprintf("%s", value.Any())
			if safe := oauth.MaskTokens(text); safe != text {
				value = slog.StringValue(safe)
			}
		}
		masked = append(masked, slog.Attr{Key: attribute.Key, Value: value})
	}
	return masked
}
