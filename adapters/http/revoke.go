package http

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// revoke answers 200 for any token, so that the response does not reveal whether it exists
// (RFC 7009 §2.2).
func (e *Endpoints) revoke(c echo.Context) error {
	form, err := readClientForm(c)
	if err != nil {
		return err
	}
	credentials, err := identify(c.Request(), form)
	if err != nil {
		return err
	}
	if err := e.server.Tokens.Revoke(e.contextOf(c), credentials, form.Get("token")); err != nil {
		return err
	}
	noStore(c)
	return c.NoContent(http.StatusOK)
}
