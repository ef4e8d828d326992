package remote

import (
	"context"
	"fmt"
	"net/http"

	"github.com/pasteport/pasteport/adapters/internal/outbound"
	"github.com/pasteport/pasteport/domain/oauth"
)

// NewEndpoint returns a verifier that sends the token to a URL of the site as its bearer token. 2xx
// means valid, 401 and 403 mean invalid, and any other status is an outage. A JSON response may
// have the principal in the members subject, name, token_id, roles and scopes. The URL must be
// checked with outbound.Options.CheckURL.
func NewEndpoint(url string, t Transport) *Verifier {
	request := func(ctx context.Context, token string) (*http.Request, error) {
		if !outbound.IsSendable(token) {
			return nil, oauth.ErrUnknownBearer
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		return request, nil
	}
	return &Verifier{
		client:  t.Client(),
		logger:  t.Logger,
		request: request,
		read:    readEndpoint,
	}
}

func readEndpoint(got answer) (oauth.Principal, error) {
	switch {
	case got.status == http.StatusUnauthorized, got.status == http.StatusForbidden:
		return oauth.Principal{}, oauth.ErrUnknownBearer
	case got.status < 200 || got.status > 299:
		return oauth.Principal{}, problem(fmt.Sprintf("it answered %d instead of 2xx, 401 or 403", got.status))
	case !outbound.IsJSON(got.contentType) || len(got.body) == 0:
		return oauth.Principal{}, nil
	}
	var found struct {
		Subject string     `json:"subject"`
		Name    string     `json:"name"`
		TokenID identifier `json:"token_id"`
		Roles   []string   `json:"roles"`
		Scopes  []string   `json:"scopes"`
	}
	if err := got.decode(&found); err != nil {
		return oauth.Principal{}, err
	}
	return oauth.Principal{
		Subject: found.Subject,
		Name:    found.Name,
		TokenID: string(found.TokenID),
		Roles:   found.Roles,
		Scopes:  found.Scopes,
	}, nil
}
