package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/mcp/sdkserver"
	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

// registrations remembers what of an OAuthServer is mounted on which Echo of the site.
type registrations struct {
	mu     sync.RWMutex
	on     map[*echo.Echo][]oauth.Resource // the zero Resource stands for OAuthServer.Register
	routes *echo.Echo                      // has every route of this OAuthServer
	served map[string]bool                 // method and pattern of each route in routes
}

// resources returns the resources whose MCP servers are mounted on the Echo.
func (r *registrations) resources(site *echo.Echo) []oauth.Resource {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.on[site]
}

// add records what mount mounts, and mounts it on r.routes, where Serves looks for it.
func (r *registrations) add(site *echo.Echo, resource oauth.Resource, mount func(*echo.Echo)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.on == nil {
		r.on, r.routes, r.served = map[*echo.Echo][]oauth.Resource{}, echo.New(), map[string]bool{}
	}
	r.on[site] = append(r.on[site], resource)
	mount(r.routes)
	for _, route := range r.routes.Routes() {
		r.served[route.Method+" "+route.Path] = true
	}
}

// Serves reports whether this OAuthServer or one of its registered MCPServers answers a request
// with this method and path. A site can then keep its own middleware away from the request. Serves
// returns false before Register or Handler.
func (a *OAuthServer) Serves(r *http.Request) bool {
	a.registered.mu.RLock()
	defer a.registered.mu.RUnlock()
	if a.registered.routes == nil {
		return false
	}
	found := a.registered.routes.AcquireContext()
	defer a.registered.routes.ReleaseContext(found)
	found.Reset(r, nil)
	a.registered.routes.Router().Find(r.Method, echo.GetPath(r), found)
	return a.registered.served[r.Method+" "+found.Path()]
}

// Skipper is Serves for middleware of Echo. Set it as the Skipper of every middleware for the whole
// site that would break these endpoints: CSRF, Gzip, Decompress, Timeout, ContextTimeout, CORS and
// BodyDump.
func (a *OAuthServer) Skipper(c echo.Context) bool { return a.Serves(c.Request()) }

// Register mounts only the endpoints of the authorization server on an Echo, for MCP servers
// elsewhere that ask it about tokens (oauth.ProtectedServer.Secret). It reports a route of the site
// that an endpoint would hide. For the MCP servers of this process, use MCPServer.Register. A site
// without Echo passes echo.New(), which is an http.Handler.
func (a *OAuthServer) Register(site *echo.Echo) error {
	endpoints := echo.New()
	a.endpoints.Mount(endpoints)
	if err := checkRoutes(site, endpoints); err != nil {
		return fmt.Errorf("registering the authorization server: %w", err)
	}
	a.endpoints.Mount(site)
	a.registered.add(site, oauth.Resource{}, a.endpoints.Mount)
	return nil
}

// checkRegistration returns all mistakes of the registration at once.
func (m *MCPServer) checkRegistration(site *echo.Echo) error {
	mistakes := append(slices.Clone(m.wrongOptions), m.options.Check())
	if site == nil {
		mistakes = append(mistakes,
			errors.New("the Echo is nil: pass that of the site, or call Handler for a site without Echo"))
	}
	if site != nil && site.IPExtractor == nil && m.addressOf != nil {
		mistakes = append(mistakes,
			errors.New("WithIPExtractor is for Handler: set e.IPExtractor of the Echo that Register gets instead"))
	}
	if m.mounted == nil {
		mistakes = append(mistakes, errNoServer)
	}
	if m.authz == nil {
		mistakes = append(mistakes, m.errNoOAuth("NewMCPServer, or use ServeStdio"))
		return errors.Join(mistakes...)
	}
	if m.resourceIndex() < 0 {
		var known []oauth.Resource
		for _, one := range m.authz.Resources() {
			known = append(known, one.Resource)
		}
		mistakes = append(mistakes, fmt.Errorf("WithResource names %q, which is not a resource of the oauth.Config: "+
			"choose one of %v", m.resource, known))
	}
	if m.mounted != nil {
		mistakes = append(mistakes, m.checkToolScopes(), m.checkSite(site))
	}
	return errors.Join(mistakes...)
}

// checkSite returns the conflicts with what is registered already, and with the site's own routes.
func (m *MCPServer) checkSite(site *echo.Echo) error {
	isKnown := m.resourceIndex() >= 0
	switch {
	case m.isRegistered:
		return errors.New("this MCPServer is registered already: leave out the second Register or Handler, and make " +
			"another MCPServer for another MCP server")
	case site == nil:
		return nil
	case isKnown && slices.Contains(m.authz.registered.resources(site), m.protection().Resource):
		return fmt.Errorf("the resource %s has an MCP server on this Echo already: list another in MoreServers "+
			"of the oauth.Config and name it with WithResource", m.protection().Resource)
	}
	endpoints := echo.New()
	if isKnown {
		m.mounted.Mount(endpoints)
	}
	if len(m.authz.registered.resources(site)) == 0 { // else the site has these routes from us
		m.authz.endpoints.Mount(endpoints)
	}
	return checkRoutes(site, endpoints)
}

// checkRoutes returns the routes of the site that the endpoints would replace.
func checkRoutes(site, endpoints *echo.Echo) error {
	ours := map[string]bool{} // false for handlers of unknown paths, which may replace those of the site
	for _, route := range endpoints.Routes() {
		ours[route.Method+" "+withoutNames(route.Path)] = route.Method != echo.RouteNotFound
	}
	hidden := map[string][]string{}
	for _, route := range site.Routes() {
		if ours[route.Method+" "+withoutNames(route.Path)] {
			hidden[route.Path] = append(hidden[route.Path], route.Method)
		}
	}
	var mistakes []error
	for path, methods := range hidden {
		slices.Sort(methods)
		mistakes = append(mistakes, fmt.Errorf("the site's route %s %s would be hidden: move it, or choose another "+
			"Resource or Issuer in the oauth.Config", strings.Join(methods, ", "), path))
	}
	slices.SortFunc(mistakes, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(mistakes...)
}

// withoutNames returns a pattern of Echo without the names of its parameters. Patterns that differ
// only in these names match the same paths.
func withoutNames(pattern string) string {
	segments := strings.Split(pattern, "/")
	for i, segment := range segments {
		if strings.HasPrefix(segment, ":") {
			segments[i] = ":"
		}
	}
	return strings.Join(segments, "/")
}

// checkToolScopes returns the scopes that tools require but no client can request. It checks only
// the tools that a server of the SDK has so far, and only calls without arguments.
func (m *MCPServer) checkToolScopes() error {
	needs := m.options.ToolScopes
	if calls := m.options.CallScopes; calls != nil {
		needs = func(tool string) oauth.Scopes { return calls(tool, nil) }
	}
	server, isLocal := m.mounted.(*sdkserver.Server)
	if needs == nil || !isLocal {
		return nil
	}
	known := m.protection().Scopes.Known().With(oauth.OfflineAccess)
	var mistakes []error
	for _, tool := range server.ToolNames(context.Background()) {
		if unknown := slices.DeleteFunc(needs(tool).Values(), known.Has); len(unknown) > 0 {
			mistakes = append(mistakes, fmt.Errorf("WithToolScopes wants %s for the tool %q, which no client can "+
				"request: add it to Scopes of the oauth.Config or of the oauth.ProtectedServer, or choose one of %s",
				strings.Join(unknown, ", "), tool, known))
		}
	}
	return errors.Join(mistakes...)
}

// isNil reports whether an interface has no value, or a pointer or function that is nil. A nil map
// may be a valid value.
func isNil(value any) bool {
	v := reflect.ValueOf(value)
	return !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Func) && v.IsNil()
}

// checkNil returns the mistakes of values that have a type but are nil, because their first use
// would panic.
func checkNil(config oauth.Config, chosen oauthOptions) error {
	mistakes := slices.Clone(chosen.wrong)
	if config.Verifier != nil && isNil(config.Verifier) {
		mistakes = append(mistakes,
			oauth.NewMistake("Verifier", "is a nil %T: set one that is not nil, or VerifyBearer",
				config.Verifier))
	}
	for _, server := range config.MoreServers {
		if server.Verifier != nil && isNil(server.Verifier) {
			mistakes = append(mistakes,
				oauth.NewMistake("MoreServers", "has a nil %T for %s: leave its Verifier out to use that of the "+
					"first server", server.Verifier, server.Resource))
		}
	}
	if chosen.clients != nil && isNil(chosen.clients) {
		mistakes = append(mistakes,
			fmt.Errorf("WithClientDirectory has a nil %T: leave the option out", chosen.clients))
	}
	return errors.Join(mistakes...)
}

// EndGrantsOf ends all grants of one of the site's tokens, closes their open streams, and withdraws
// the codes of the token that are not redeemed. Call it when the site revokes the token. It returns
// how many grants and codes were active.
func (a *OAuthServer) EndGrantsOf(ctx context.Context, token string) (int, error) {
	return a.server.Operator.EndGrantsOf(ctx, map[string]string{credential.Token: token}, oauth.EndedByHost)
}

// EndGrantsOfFields is EndGrantsOf for a Config with HostFields whose verifiers are all
// oauth.FieldsVerifiers. values needs every required field. With any other verifier, use
// EndGrantsOf, which ends the grants of a token whatever the other fields are.
func (a *OAuthServer) EndGrantsOfFields(ctx context.Context, values map[string]string) (int, error) {
	return a.server.Operator.EndGrantsOf(ctx, values, oauth.EndedByHost)
}

// EndGrantsOfTokenID is EndGrantsOf for a site that stores only hashes of its tokens: id is what
// its verifier returns as Principal.TokenID. It reads all grants, and fails as Grants does.
func (a *OAuthServer) EndGrantsOfTokenID(ctx context.Context, id string) (int, error) {
	return a.server.Operator.EndGrantsOfTokenID(ctx, id)
}

// EndLeaked is EndGrantsOf for an operator who has the token. It returns an error if the token
// alone does not identify grants, because several fields do so together.
func (a *OAuthServer) EndLeaked(ctx context.Context, token string) (int, error) {
	return a.server.Operator.EndLeaked(ctx, token)
}

// ReplaceHostToken moves the connections of one of the site's tokens to another token of the same
// person, and returns their number. Call it while the old token still works; no app notices. It
// changes nothing and returns an error when the verifier refuses the new token or names another
// person. If the verifier does not name a subject, it must still accept the old token.
func (a *OAuthServer) ReplaceHostToken(ctx context.Context, token, replacement string) (int, error) {
	return a.server.Operator.ReplaceHostToken(ctx, map[string]string{credential.Token: token},
		map[string]string{credential.Token: replacement})
}

// ReplaceHostFields is ReplaceHostToken for a Config with HostFields.
func (a *OAuthServer) ReplaceHostFields(ctx context.Context, values, replacement map[string]string) (int, error) {
	return a.server.Operator.ReplaceHostToken(ctx, values, replacement)
}

// Grants iterates over all active grants and unredeemed codes, oldest first. It ends with an error
// if the store is not an oauth.AuthorizationLister.
func (a *OAuthServer) Grants(ctx context.Context) iter.Seq2[oauth.Connection, error] {
	return a.server.Operator.Grants(ctx)
}

// EndGrant ends the active grant with the id, or withdraws the unredeemed code. It returns 1, or 0
// if the id has neither.
func (a *OAuthServer) EndGrant(ctx context.Context, id string) (int, error) {
	return a.server.Operator.EndGrant(ctx, id)
}

// EndGrants ends the active grants and withdraws the unredeemed codes for which chosen returns
// true, and returns their number. It fails as Grants does.
func (a *OAuthServer) EndGrants(ctx context.Context, chosen func(oauth.Connection) bool) (int, error) {
	return a.server.Operator.EndGrants(ctx, chosen, oauth.EndedByOperator)
}
