// Package fositesite is a site on ory/fosite, with a store in memory, in SQLite or on PostgreSQL.
package fositesite

import (
	"net/http"
	"time"

	"github.com/ory/fosite"
	"github.com/ory/fosite/compose"
	"github.com/ory/fosite/storage"

	"github.com/pasteport/pasteport/bench/load"
	"github.com/pasteport/pasteport/bench/server"
)

// Servers are the variants of the site.
var Servers = map[string]server.Open{"fosite": inMemory, "fosite-sql": inSQL}

func inMemory(order server.Order, _ string) (server.Site, error) {
	kept := storage.NewMemoryStore()
	kept.Clients[order.Client] = clientOf(order)
	return server.Site{Handler: routes(kept), Close: server.Still}, nil
}

func inSQL(order server.Order, _ string) (server.Site, error) {
	kept, err := openStore(order)
	if err != nil {
		return server.Site{}, err
	}
	return server.Site{Handler: routes(kept), Close: kept.close}, nil
}

func clientOf(order server.Order) *fosite.DefaultClient {
	return &fosite.DefaultClient{
		ID:            order.Client,
		RedirectURIs:  []string{load.Redirect},
		Public:        true,
		ResponseTypes: []string{"code"},
		GrantTypes:    []string{"authorization_code", "refresh_token"},
		Scopes:        []string{"mcp", "offline_access"},
	}
}

type endpoints struct{ fosite.OAuth2Provider }

func routes(kept any) http.Handler {
	config := &fosite.Config{
		GlobalSecret:                make([]byte, 32),
		AccessTokenLifespan:         time.Hour,
		RefreshTokenLifespan:        30 * 24 * time.Hour,
		EnforcePKCE:                 true,
		EnforcePKCEForPublicClients: true,
	}
	h := endpoints{compose.Compose(config, kept, compose.NewOAuth2HMACStrategy(config),
		compose.OAuth2AuthorizeExplicitFactory, compose.OAuth2PKCEFactory, compose.OAuth2RefreshTokenGrantFactory,
		compose.OAuth2TokenRevocationFactory, compose.OAuth2TokenIntrospectionFactory,
	)}
	mux := http.NewServeMux()
	mux.HandleFunc("/oauth/authorize", h.authorize)
	mux.HandleFunc("POST /oauth/token", h.token)
	mux.HandleFunc("POST /oauth/revoke", func(w http.ResponseWriter, r *http.Request) {
		h.WriteRevocationResponse(r.Context(), w, h.NewRevocationRequest(r.Context(), r))
	})
	mux.HandleFunc("POST /mcp", func(w http.ResponseWriter, r *http.Request) {
		_, _, err := h.IntrospectToken(r.Context(), fosite.AccessTokenFromRequest(r), fosite.AccessToken,
			new(fosite.DefaultSession))
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		server.Answer(w, r)
	})
	return mux
}

func (h endpoints) authorize(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	request, err := h.NewAuthorizeRequest(ctx, r)
	if err != nil {
		h.WriteAuthorizeError(ctx, w, request, err)
		return
	}
	if r.Method == http.MethodGet {
		server.ShowForm(w, r)
		return
	}
	if !server.KnowsToken(r) {
		http.Error(w, "wrong token", http.StatusForbidden)
		return
	}
	for _, scope := range request.GetRequestedScopes() {
		request.GrantScope(scope)
	}
	response, err := h.NewAuthorizeResponse(ctx, request, &fosite.DefaultSession{Subject: "somebody"})
	if err != nil {
		h.WriteAuthorizeError(ctx, w, request, err)
		return
	}
	h.WriteAuthorizeResponse(ctx, w, request, response)
}

func (h endpoints) token(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	request, err := h.NewAccessRequest(ctx, r, new(fosite.DefaultSession))
	if err != nil {
		h.WriteAccessError(ctx, w, request, err)
		return
	}
	response, err := h.NewAccessResponse(ctx, request)
	if err != nil {
		h.WriteAccessError(ctx, w, request, err)
		return
	}
	h.WriteAccessResponse(ctx, w, request, response)
}
