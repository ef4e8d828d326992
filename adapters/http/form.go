package http

import (
	"bytes"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	// maxQuery has room for a state, a client_id and a redirect_uri of the longest kind, with every character escaped.
	maxQuery = 24 << 10
	// maxForm has room for the ticket of such a request, and for a token.
	maxForm = 32 << 10
	// formLimit is how long a client may take to send a form.
	formLimit = 10 * time.Second
)

// readQuery parses the raw query once; Go's own FormValue would hide its errors and mix in the body (A2, A3).
func readQuery(r *http.Request) (oauth.Parameters, error) {
	if len(r.URL.RawQuery) > maxQuery {
		return nil, refuseWith(http.StatusRequestURITooLong, "A2", "the request is too long")
	}
	return parse(r.URL.RawQuery)
}

// readForm parses the body and nothing else (B1, D2-D4); unsupported is the status for another media type.
func readForm(c echo.Context, unsupported int) (oauth.Parameters, error) {
	types := c.Request().Header.Values(echo.HeaderContentType)
	media, _, err := mime.ParseMediaType(strings.Join(types, ", ")) // of two there is none
	if err != nil || media != echo.MIMEApplicationForm {
		return nil, refuseWith(unsupported, "B1, D2", "the body has to be application/x-www-form-urlencoded")
	}
	body, err := readBody(c)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, refuseWith(http.StatusRequestEntityTooLarge, "B1, D3", "the body is too large")
	case err != nil:
		return nil, refuseWith(http.StatusBadRequest, "B1, D3", "the body cannot be read")
	}
	return parse(body)
}

// readBody takes the deadline back that dispatch has set.
func readBody(c echo.Context) (string, error) {
	body := new(bytes.Buffer)
	body.Grow(int(min(max(c.Request().ContentLength, 0), maxForm)) + bytes.MinRead)
	_, err := body.ReadFrom(http.MaxBytesReader(c.Response(), c.Request().Body, maxForm))
	if err == nil {
		readUntil(c, time.Time{})
	}
	return body.String(), err
}

// readUntil says when to give a body up. It holds for what net/http reads of one that was refused, too: it waits for that before it answers.
func readUntil(c echo.Context, limit time.Time) {
	_ = http.NewResponseController(c.Response()).SetReadDeadline(limit) // recorders in tests have no deadlines
}

func parse(encoded string) (oauth.Parameters, error) {
	values, err := url.ParseQuery(encoded)
	if err != nil {
		return nil, oauth.Refuse(oauth.InvalidRequest, "A3, B1, D3", "the parameters are not form-encoded")
	}
	return oauth.Parameters(values), nil
}
