package remote

import (
	"context"
	"fmt"
	"net/http"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Endpoint asks a URL of the site with the token as its bearer: any 2xx says that the token holds, 401 and 403 that it does not,
// and everything else that the site cannot tell just now. An answer of JSON may say who stands behind the token, in the members
// subject, roles and scopes.
type Endpoint struct {
	url    string
	client client
}

// NewEndpoint expects a URL that CheckURL has passed.
func NewEndpoint(url string, t Transport) *Endpoint { return &Endpoint{url, newClient(t)} }

// person is the answer of the site; what it leaves out is not said.
type person struct {
	Subject string   `json:"subject"`
	Roles   []string `json:"roles"`
	Scopes  []string `json:"scopes"`
}

// VerifyBearer implements oauth.BearerVerifier.
func (e *Endpoint) VerifyBearer(ctx context.Context, token string) (oauth.Principal, error) {
	if !sendable(token) {
		return oauth.Principal{}, oauth.ErrUnknownBearer
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url, nil)
	if err != nil {
		return oauth.Principal{}, fmt.Errorf("asking about a token: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", "application/json")
	got, err := e.client.send(request)
	if err != nil {
		return oauth.Principal{}, e.client.unavailable(ctx, request, err)
	}
	switch {
	case got.status == http.StatusUnauthorized, got.status == http.StatusForbidden:
		return oauth.Principal{}, oauth.ErrUnknownBearer
	case got.status < 200 || got.status > 299:
		return oauth.Principal{}, e.client.unavailable(ctx, request, problem(fmt.Sprintf("it answered %d; 2xx, 401 or 403 would tell", got.status)))
	case !got.isJSON() || len(got.body) == 0:
		return oauth.Principal{}, nil
	}
	var found person
	if err := got.read(&found, "subject", "roles", "scopes"); err != nil {
		return oauth.Principal{}, e.client.unavailable(ctx, request, err)
	}
	return oauth.Principal(found), nil
}
