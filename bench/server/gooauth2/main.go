// Command gooauth2 is a site on go-oauth2, with its store in memory.
package main

import (
	"errors"
	"net/http"
	"time"

	"github.com/go-oauth2/oauth2/v4"
	"github.com/go-oauth2/oauth2/v4/manage"
	"github.com/go-oauth2/oauth2/v4/models"
	gooauth2 "github.com/go-oauth2/oauth2/v4/server"
	"github.com/go-oauth2/oauth2/v4/store"

	"github.com/pasteport/pasteport/bench/server"
)

func main() { server.Main(map[string]server.Open{"go-oauth2": open}) }

func open(order server.Order, _ string) (server.Site, error) {
	clients := store.NewClientStore()
	if err := clients.Set(order.Client,
		&models.Client{ID: order.Client, Domain: "http://127.0.0.1:4321", Public: true}); err != nil {
		return server.Site{}, err
	}
	manager := manage.NewDefaultManager()
	manager.MapClientStorage(clients)
	manager.MustTokenStorage(store.NewMemoryTokenStore())
	manager.SetAuthorizeCodeTokenCfg(&manage.Config{AccessTokenExp: time.Hour, RefreshTokenExp: 30 * 24 * time.Hour,
		IsGenerateRefresh: true})
	config := gooauth2.NewConfig()
	config.AllowedResponseTypes, config.ForcePKCE = []oauth2.ResponseType{oauth2.Code}, true
	config.AllowedGrantTypes = []oauth2.GrantType{oauth2.AuthorizationCode, oauth2.Refreshing}
	authz := gooauth2.NewServer(config, manager)
	authz.SetClientInfoHandler(gooauth2.ClientFormHandler)
	authz.SetUserAuthorizationHandler(func(_ http.ResponseWriter, r *http.Request) (string, error) {
		if !server.KnowsToken(r) {
			return "", errors.New("wrong token")
		}
		return "somebody", nil
	})
	return server.Site{Handler: routes(authz, manager), Close: server.Still}, nil
}

func routes(authz *gooauth2.Server, manager *manage.Manager) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /oauth/authorize", func(w http.ResponseWriter, r *http.Request) {
		if _, err := authz.ValidationAuthorizeRequest(r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		server.ShowForm(w, r)
	})
	mux.HandleFunc("POST /oauth/authorize", func(w http.ResponseWriter, r *http.Request) {
		if err := authz.HandleAuthorizeRequest(w, r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	mux.HandleFunc("POST /oauth/token", func(w http.ResponseWriter, r *http.Request) {
		_ = authz.HandleTokenRequest(w, r)
	})
	mux.HandleFunc("POST /oauth/revoke", func(w http.ResponseWriter, r *http.Request) {
		if err := manager.RemoveRefreshToken(r.Context(), r.PostFormValue("token")); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("POST /mcp", func(w http.ResponseWriter, r *http.Request) {
		if _, err := authz.ValidationBearerToken(r); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		server.Answer(w, r)
	})
	return mux
}
