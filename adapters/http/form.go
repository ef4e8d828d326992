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
	// maxQuery fits the longest state, client_id and redirect_uri with every character escaped.
	maxQuery = 24 << 10
	// maxForm fits the ticket of such a request and a token.
	maxForm = 32 << 10
	// formTimeout bounds the time in which a client sends a form.
	formTimeout = 10 * time.Second
)

// readQuery parses the raw query. http.Request.FormValue would hide errors and mix in the body.
func readQuery(r *http.Request) (oauth.Parameters, error) {
	if len(r.URL.RawQuery) > maxQuery {
		return nil, refuseWith(http.StatusRequestURITooLong, "A2", "the request is too long")
	}
	return parse(r.URL.RawQuery)
}

// readForm parses the body only; unsupported is the status for another media type.
func readForm(c echo.Context, unsupported int) (oauth.Parameters, error) {
	types := c.Request().Header.Values(echo.HeaderContentType)
	media, _, err := mime.ParseMediaType(strings.Join(types, ", ")) // two headers are not a media type
	if err != nil || media != echo.MIMEApplicationForm {
		return nil, refuseWith(unsupported, "B1, D2", "the body has to be application/x-www-form-urlencoded")
	}
	body, err := readBody(c, func(status int, why string) error { return refuseWith(status, "B1, D3", why) })
	if err != nil {
		return nil, err
	}
	return parse(body)
}

// readBody reads the body and clears the deadline that dispatch has set.
func readBody(c echo.Context, refuse func(status int, why string) error) (string, error) {
	body := new(bytes.Buffer)
	body.Grow(int(min(max(c.Request().ContentLength, 0), maxForm)) + bytes.MinRead)
	_, err := body.ReadFrom(http.MaxBytesReader(c.Response(), c.Request().Body, maxForm))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return "", refuse(http.StatusRequestEntityTooLarge, "the body is too large")
	}
	if err != nil {
		return "", refuse(http.StatusBadRequest, "the body cannot be read")
	}
	readUntil(c, time.Time{})
	return body.String(), nil
}

// readUntil sets the read deadline. net/http also reads the rest of a refused body before it
// responds, until this deadline.
func readUntil(c echo.Context, limit time.Time) {
	_ = http.NewResponseController(c.Response()).SetReadDeadline(limit) // a recorder of a test has no deadlines
}

func parse(encoded string) (oauth.Parameters, error) {
	values, err := url.ParseQuery(encoded)
	if err != nil {
		return nil, oauth.Refuse(oauth.InvalidRequest, "A3, B1, D3", "the parameters are not form-encoded")
	}
	return oauth.Parameters(values), nil
}
