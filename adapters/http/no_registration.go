package http

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
)

// rootRegisterPath is where clients of MCP 2025-03-26, and others that find no registration
// endpoint in the metadata, register themselves.
const rootRegisterPath = "/register"

// refuseRegistration records each attempt of a client to register itself, because this is why it
// cannot log in.
func (e *Endpoints) refuseRegistration(site *echo.Echo, base string) {
	site.Any(base+registerPath, func(c echo.Context) error {
		recordRegistration(c)
		return c.NoContent(http.StatusNotFound)
	}, e.follow)
	site.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		recording := e.follow(recordUnserved(next))
		return func(c echo.Context) error {
			if path := c.Request().URL.Path; path == rootRegisterPath || path == base+rootRegisterPath {
				return recording(c)
			}
			return next(c)
		}
	})
}

// recordUnserved records a registration that the site does not serve. It is middleware
// and not a route, because the site may have its own page at /register: Echo would prefer even a
// RouteNotFound handler at that path to a route of the site with a parameter, such as /:page.
func recordUnserved(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := next(c)
		status := c.Response().Status
		if failed := new(echo.HTTPError); errors.As(err, &failed) {
			status = failed.Code
		}
		if status == http.StatusNotFound || status == http.StatusMethodNotAllowed {
			recordRegistration(c)
		}
		return err
	}
}

// recordRegistration records a refused registration, which is a POST.
func recordRegistration(c echo.Context) {
	if c.Request().Method == http.MethodPost {
		attempt.From(c.Request().Context()).
			RefuseAt(attempt.Registration, oauth.Refuse(oauth.InvalidRequest, "F4", "self-registration is off"))
	}
}
