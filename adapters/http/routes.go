// Package http has the endpoints of the authorization server on Echo. Endpoints.Mount is the route
// table; each endpoint parses a request, calls one use case of package application and writes the
// response. Follower records requests in the connection trace. Import it as oauthhttp.
package http

import (
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/http/pages"
	"github.com/pasteport/pasteport/adapters/internal/wellknown"
	"github.com/pasteport/pasteport/application"
	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// Endpoints are the HTTP endpoints of the authorization server.
type Endpoints struct {
	server *application.Server
	logger *slog.Logger
	issuer *url.URL
	pages  *pages.Pages
	follow echo.MiddlewareFunc

	upstream func(oauth.Resource) pages.UpstreamCondition
}

// Options configure the endpoints.
type Options struct {
	Appearance pages.Appearance
	Follow     echo.MiddlewareFunc                          // wraps every route
	Upstream   func(oauth.Resource) pages.UpstreamCondition // nil for none
	Logger     *slog.Logger
}

// New returns the endpoints of a server. The URLs that they publish come from the configured
// issuer.
func New(server *application.Server, o Options) (*Endpoints, error) {
	issuer, err := url.Parse(server.Settings.Issuer)
	if err != nil {
		return nil, err
	}
	drawn, err := pages.New(issuer.Host, o.Appearance, server.Settings.Links)
	if err != nil {
		return nil, err
	}
	if o.Upstream == nil {
		o.Upstream = func(oauth.Resource) pages.UpstreamCondition { return pages.UpstreamWorks }
	}
	return &Endpoints{
		server:   server,
		logger:   o.Logger,
		issuer:   issuer,
		pages:    drawn,
		follow:   o.Follow,
		upstream: o.Upstream,
	}, nil
}

// The paths of the endpoints, below the issuer.
const (
	authorizePath = "/oauth/authorize"
	tokenPath     = oauth.TokenPath
	revokePath    = "/oauth/revoke"
	registerPath  = "/oauth/register"

	introspectPath  = "/oauth/introspect"
	connectionsPath = "/oauth/connections"
)

// Mount adds every route of the authorization server to the site's Echo.
func (e *Endpoints) Mount(site *echo.Echo) {
	metadata := wellknown.New(attempt.ServerMetadata, e.metadata())
	base := e.issuer.Path
	if !e.server.Settings.SelfRegistration {
		e.refuseRegistration(site, base)
		metadata.Note(oauth.Refuse(oauth.InvalidRequest, "F4", "")) // the trace tells why a client cannot register
	}
	metadata.Mount(site, "/.well-known/oauth-authorization-server"+base, e.follow)
	if base != "" {
		metadata.Mount(site, base+"/.well-known/oauth-authorization-server", e.follow)
	}
	routes := []route{
		{base + authorizePath, "GET, POST", map[string]endpoint{http.MethodGet: e.authorize, http.MethodPost: e.decide},
			e.failOnPage, attempt.Authorize},
		{base + connectionsPath, "GET, POST",
			map[string]endpoint{http.MethodGet: e.connections, http.MethodPost: e.change}, e.failOnPage, ""},
		{base + tokenPath, "POST, OPTIONS",
			map[string]endpoint{http.MethodPost: e.token, http.MethodOptions: preflight}, e.failInJSON,
			attempt.Exchange},
		{base + revokePath, "POST, OPTIONS",
			map[string]endpoint{http.MethodPost: e.revoke, http.MethodOptions: preflight}, e.failInJSON, ""},
	}
	if e.server.Settings.Introspects() {
		ask := map[string]endpoint{http.MethodPost: e.introspect}
		routes = append(routes, route{base + introspectPath, "POST", ask, e.failInJSON, ""})
	}
	for _, route := range slices.Concat(routes, e.selfRegistration(base), e.hostedClients(base)) {
		handle := e.dispatch(route.serve, route.allow, func(c echo.Context, err error) error {
			attempt.From(c.Request().Context()).RefuseAt(route.step, err)
			return route.fail(c, err)
		})
		site.Any(route.path, handle, e.follow)
		site.RouteNotFound(route.path, handle, e.follow) // methods that Echo does not know
	}
	notFound := func(c echo.Context) error { // before a catch-all route of the site can answer
		recorder := attempt.From(c.Request().Context())
		recorder.Record(attempt.ServerMetadata)
		recorder.Refuse(oauth.Refuse(oauth.InvalidRequest, "F5", "this server is not an OpenID provider"))
		return c.NoContent(http.StatusNotFound)
	}
	const openID = "/.well-known/openid-configuration"
	for _, path := range []string{openID + base, openID + base + "/*", base + openID} {
		site.Any(path, notFound, e.follow)
	}
}

// route is a row of the route table.
type route struct {
	path  string
	allow string
	serve map[string]endpoint
	fail  errorWriter
	step  attempt.Kind // of a refusal before the endpoint has recorded a step; "" records none
}

// selfRegistration returns the routes of clients that register themselves, none unless the operator
// allows it.
func (e *Endpoints) selfRegistration(base string) []route {
	if !e.server.Settings.SelfRegistration {
		return nil
	}
	document := map[string]endpoint{http.MethodGet: e.registeredClient, http.MethodHead: e.registeredClient,
		http.MethodOptions: preflightOfDocument}
	return []route{
		{base + registerPath, "POST, OPTIONS",
			map[string]endpoint{http.MethodPost: e.register, http.MethodOptions: preflight}, e.failInJSON, ""},
		{base + client.RegisteredPath + "*", "GET, HEAD, OPTIONS", document, e.failInJSON, ""},
	}
}

// hostedClients returns the route of each client whose document this server publishes.
func (e *Endpoints) hostedClients(base string) (routes []route) {
	for _, hosted := range e.server.Clients.AllHosted() {
		path := strings.TrimPrefix(hosted.ID.String(), e.server.Settings.Issuer)
		publish := func(c echo.Context) error { return writeJSON(c, http.StatusOK, documentOf(hosted)) }
		document := map[string]endpoint{http.MethodGet: publish, http.MethodHead: publish,
			http.MethodOptions: preflightOfDocument}
		routes = append(routes, route{base + path, "GET, HEAD, OPTIONS", document, e.failInJSON, ""})
	}
	return routes
}

func preflight(c echo.Context) error {
	wellknown.AnswerPreflight(c.Response(), http.MethodPost,
		"Authorization, Content-Type, Accept, MCP-Protocol-Version")
	return nil
}
