package http

import (
	"errors"
	"mime"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/internal/strictjson"
	"github.com/pasteport/pasteport/adapters/internal/wellknown"
	"github.com/pasteport/pasteport/application"
	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// register answers a registration request (RFC 7591 §3).
func (e *Endpoints) register(c echo.Context) error {
	ctx := e.contextOf(c)
	if err := e.server.Authorize.AdmitRegistration(ctx); err != nil {
		return err // not traced, so that a flood writes no rows
	}
	var registration application.Registration
	members, err := readJSON(c)
	if err == nil {
		registration, err = e.server.Authorize.Register(ctx, members)
	}
	if err != nil {
		attempt.From(ctx).RefuseAt(attempt.Registration, err)
		return err
	}
	response := registrationResponse{
		IssuedAt:       registration.At.Unix(),
		Secret:         registration.Secret.Reveal(),
		clientDocument: registeredDocument(registration.Client),
	}
	if response.Secret != "" {
		response.SecretExpiresAt = new(int64)
	}
	return writeJSON(c, http.StatusCreated, response)
}

// readJSON reads the body of a registration request as strictly as a published document.
func readJSON(c echo.Context) (map[string]any, error) {
	// Two headers, joined, are not a media type.
	media, _, err := mime.ParseMediaType(strings.Join(c.Request().Header.Values(echo.HeaderContentType), ", "))
	if err != nil || media != echo.MIMEApplicationJSON {
		return nil, oauth.Refuse(oauth.InvalidClientMetadata, "L3", "the body has to be application/json")
	}
	body, err := readBody(c, func(status int, why string) error {
		return &statusError{status, oauth.Refuse(oauth.InvalidClientMetadata, "L3", why)}
	})
	if err != nil {
		return nil, err
	}
	members, err := strictjson.Object([]byte(body))
	if err != nil {
		return nil, oauth.Refuse(oauth.InvalidClientMetadata, "L3",
			"the body is not one JSON object without duplicate members", err)
	}
	return members, nil
}

// clientDocument is a metadata document that this server publishes, in the members of RFC 7591 §2.
type clientDocument struct {
	ClientID      string   `json:"client_id"`
	ClientName    string   `json:"client_name,omitempty"`
	RedirectURIs  []string `json:"redirect_uris"`
	GrantTypes    []string `json:"grant_types"`
	ResponseTypes []string `json:"response_types"`
	AuthMethod    string   `json:"token_endpoint_auth_method"`
	Registered    bool     `json:"self_registered,omitempty"` // the name is unverified
}

type registrationResponse struct {
	IssuedAt        int64  `json:"client_id_issued_at"` // seconds
	Secret          string `json:"client_secret,omitempty"`
	SecretExpiresAt *int64 `json:"client_secret_expires_at,omitempty"` // 0 for never, beside a secret
	clientDocument
}

func registeredDocument(of *client.Metadata) clientDocument {
	document := documentOf(of)
	document.Registered = true
	return document
}

func documentOf(of *client.Metadata) clientDocument {
	grants := []string{"authorization_code"}
	if of.MayRefresh {
		grants = append(grants, "refresh_token")
	}
	return clientDocument{
		ClientID:      of.ID.String(),
		ClientName:    of.Name,
		RedirectURIs:  of.RedirectURIs(),
		GrantTypes:    grants,
		ResponseTypes: []string{"code"},
		AuthMethod:    string(of.PublishedMethod()),
	}
}

// registeredClient answers a client_id of register with its document. The address has to be the
// client_id, byte for byte.
func (e *Endpoints) registeredClient(c echo.Context) error {
	address, unknown := c.Request().URL, refuseWith(http.StatusNotFound, "L2", "no client has this client_id")
	path, found := strings.CutPrefix(address.EscapedPath(), e.issuer.Path)
	if !found || address.RawQuery != "" || address.ForceQuery {
		return unknown
	}
	registered, err := e.server.Clients.Open(oauth.RestoreClientID(e.server.Settings.Issuer + path))
	if kind, _ := oauth.KindOf(err); kind == oauth.LostRegistration {
		return unknown
	}
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, registeredDocument(registered))
}

func preflightOfDocument(c echo.Context) error {
	wellknown.AnswerPreflight(c.Response(), "GET, HEAD", "Accept, MCP-Protocol-Version")
	return nil
}

// rootRegisterPath is where clients of MCP 2025-03-26, and others that find no registration
// endpoint in the metadata, register themselves.
const rootRegisterPath = "/register"

// refuseRegistration records each attempt of a client to register itself, because this is why it
// cannot log in. /oauth/register gets a route. /register may be a page of the site, also of a route
// such as /:page, which a route of ours would hide; so middleware looks at the status there.
func (e *Endpoints) refuseRegistration(site *echo.Echo, base string) {
	site.Any(base+registerPath, func(c echo.Context) error {
		recordRegistration(c)
		return c.NoContent(http.StatusNotFound)
	}, e.follow)
	site.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		recording := e.follow(func(c echo.Context) error {
			err := next(c)
			status := c.Response().Status
			if failed := new(echo.HTTPError); errors.As(err, &failed) {
				status = failed.Code
			}
			if status == http.StatusNotFound || status == http.StatusMethodNotAllowed {
				recordRegistration(c)
			}
			return err
		})
		return func(c echo.Context) error {
			if path := c.Request().URL.Path; path == rootRegisterPath || path == base+rootRegisterPath {
				return recording(c)
			}
			return next(c)
		}
	})
}

// recordRegistration records a refused registration, which is a POST.
func recordRegistration(c echo.Context) {
	if c.Request().Method == http.MethodPost {
		attempt.From(c.Request().Context()).
			RefuseAt(attempt.Registration, oauth.Refuse(oauth.InvalidRequest, "F4", "self-registration is off"))
	}
}
