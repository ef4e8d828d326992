package remote

import (
	"context"
	"fmt"
	"net/http"

	"github.com/pasteport/pasteport/adapters/internal/outbound"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Endpoint sends the token to a URL of the site as its bearer token. 2xx means valid, 401 and 403
// mean invalid, and any other status is an outage. A JSON response may have the principal in the
// members subject, name, token_id, roles and scopes.
type Endpoint struct {
	url    string
	client client
}

// NewEndpoint returns a verifier. The URL must be checked with outbound.Options.CheckURL.
func NewEndpoint(url string, t Transport) *Endpoint { return &Endpoint{url, newClient(t)} }

// principal is the JSON response of the site. All members are optional.
type principal struct {
	Subject string     `json:"subject"`
	Name    string     `json:"name"`
	TokenID identifier `json:"token_id"`
	Roles   []string   `json:"roles"`
	Scopes  []string   `json:"scopes"`
}

// VerifyBearer implements oauth.BearerVerifier.
func (e *Endpoint) VerifyBearer(ctx context.Context, token string) (oauth.Principal, error) {
	if !outbound.IsSendable(token) {
		return oauth.Principal{}, oauth.ErrUnknownBearer
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url, nil)
	if err != nil {
		return oauth.Principal{}, fmt.Errorf("verifying a token: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", "application/json")
	got, err := e.client.send(request)
	if err != nil {
		return oauth.Principal{}, e.client.unavailable(ctx, request.URL, err)
	}
	switch {
	case got.status == http.StatusUnauthorized, got.status == http.StatusForbidden:
		return oauth.Principal{}, oauth.ErrUnknownBearer
	case got.status < 200 || got.status > 299:
		return oauth.Principal{},
			e.client.unavailable(ctx, request.URL,
				problem(fmt.Sprintf("it answered %d instead of 2xx, 401 or 403", got.status)))
	case !got.isJSON() || len(got.body) == 0:
		return oauth.Principal{}, nil
	}
	var found principal
	if err := got.read(&found, "subject", "name", "token_id", "roles", "scopes"); err != nil {
		return oauth.Principal{}, e.client.unavailable(ctx, request.URL, err)
	}
	return oauth.Principal{
		Subject: found.Subject,
		Name:    found.Name,
		TokenID: string(found.TokenID),
		Roles:   found.Roles,
		Scopes:  found.Scopes,
	}, nil
}
