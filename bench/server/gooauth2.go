package server

import (
	"errors"
	"net/http"
	"time"

	"github.com/go-oauth2/oauth2/v4"
	"github.com/go-oauth2/oauth2/v4/manage"
	"github.com/go-oauth2/oauth2/v4/models"
	gooauth2 "github.com/go-oauth2/oauth2/v4/server"
	"github.com/go-oauth2/oauth2/v4/store"
)

func init() { servers["go-oauth2"] = goOAuth2 }

func goOAuth2(order Order, _ string) (site, error) {
	clients := store.NewClientStore()
	if err := clients.Set(order.Client, &models.Client{ID: order.Client, Domain: "http://127.0.0.1:4321", Public: true}); err != nil {
		return site{}, err
	}
	manager := manage.NewDefaultManager()
	manager.MapClientStorage(clients)
	manager.MustTokenStorage(store.NewMemoryTokenStore())
	manager.SetAuthorizeCodeTokenCfg(&manage.Config{AccessTokenExp: time.Hour, RefreshTokenExp: 30 * 24 * time.Hour, IsGenerateRefresh: true})
	config := gooauth2.NewConfig()
	config.AllowedResponseTypes, config.ForcePKCE = []oauth2.ResponseType{oauth2.Code}, true
	config.AllowedGrantTypes = []oauth2.GrantType{oauth2.AuthorizationCode, oauth2.Refreshing}
	server := gooauth2.NewServer(config, manager)
	server.SetClientInfoHandler(gooauth2.ClientFormHandler)
	server.SetUserAuthorizationHandler(func(_ http.ResponseWriter, r *http.Request) (string, error) {
		if !knowsToken(r) {
			return "", errors.New("wrong token")
		}
		return "somebody", nil
	})
	return site{goOAuth2Routes(server, manager), still}, nil
}

func goOAuth2Routes(server *gooauth2.Server, manager *manage.Manager) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /oauth/authorize", func(w http.ResponseWriter, r *http.Request) {
		if _, err := server.ValidationAuthorizeRequest(r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		showForm(w, r)
	})
	mux.HandleFunc("POST /oauth/authorize", func(w http.ResponseWriter, r *http.Request) {
		if err := server.HandleAuthorizeRequest(w, r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	mux.HandleFunc("POST /oauth/token", func(w http.ResponseWriter, r *http.Request) { _ = server.HandleTokenRequest(w, r) })
	mux.HandleFunc("POST /oauth/revoke", func(w http.ResponseWriter, r *http.Request) {
		if err := manager.RemoveRefreshToken(r.Context(), r.PostFormValue("token")); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("POST /mcp", func(w http.ResponseWriter, r *http.Request) {
		if _, err := server.ValidationBearerToken(r); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		answer(w, r)
	})
	return mux
}
