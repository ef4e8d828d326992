package http

import (
	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/http/pages"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Welcome answers a person who has opened the address of one of the servers in a browser.
func (e *Endpoints) Welcome(c echo.Context, status int, servers ...oauth.ProtectedResource) error {
	page := pages.Welcome{Manage: e.connectionsURL()}
	for _, server := range servers {
		page.Servers = append(page.Servers, pages.Server{Name: server.Name, URL: server.Resource.String()})
	}
	return e.edition(c).WriteWelcome(c.Response(), status, page)
}
