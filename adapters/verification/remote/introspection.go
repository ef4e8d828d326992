package remote

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Client has the credentials for an introspection endpoint (RFC 7662 §2.1).
type Client struct{ ID, Secret string }

// Introspection calls an RFC 7662 endpoint. A token is valid when it is active and not expired. sub
// is the subject, jti the token id, and roles (RFC 9068 §2.2.3.1) are the roles.
type Introspection struct {
	options IntrospectionOptions
	client  client
}

// IntrospectionOptions configures an Introspection.
type IntrospectionOptions struct {
	Transport
	URL    string
	Client Client
	// ScopeCeiling limits grants to the scope of the token. It is off by default, because that
	// scope is of the site's own authorization server, whose scopes may differ from ours.
	ScopeCeiling bool
	Now          func() time.Time // nil for time.Now
}

// NewIntrospection returns a verifier. The URL must be checked with outbound.Options.CheckURL.
func NewIntrospection(o IntrospectionOptions) *Introspection {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Introspection{o, newClient(o.Transport)}
}

// introspection has the members of RFC 7662 §2.2 that are used here.
type introspection struct {
	Active  *bool      `json:"active"`
	Subject string     `json:"sub"`
	Name    string     `json:"username"`
	TokenID identifier `json:"jti"`
	Scope   string     `json:"scope"`
	Expires *float64   `json:"exp"` // a NumericDate may have fractions (RFC 7519 §2)
	Roles   []string   `json:"roles"`
}

// VerifyBearer implements oauth.BearerVerifier.
func (i *Introspection) VerifyBearer(ctx context.Context, token string) (oauth.Principal, error) {
	request, err := i.request(ctx, token)
	if err != nil {
		return oauth.Principal{}, fmt.Errorf("verifying a token: %w", err)
	}
	found, err := i.introspect(request)
	switch {
	case err != nil:
		return oauth.Principal{}, i.client.unavailable(ctx, request.URL, err)
	case !*found.Active, i.expired(found):
		return oauth.Principal{}, oauth.ErrUnknownBearer
	}
	principal := oauth.Principal{
		Subject: found.Subject,
		Name:    found.Name,
		TokenID: string(found.TokenID),
		Roles:   found.Roles,
	}
	if i.options.ScopeCeiling {
		principal.Scopes = append([]string{}, strings.Fields(found.Scope)...) // not nil: an empty scope grants nothing
	}
	return principal, nil
}

func (i *Introspection) request(ctx context.Context, token string) (*http.Request, error) {
	form := url.Values{"token": {token}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, i.options.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	// RFC 6749 §2.3.1.
	request.SetBasicAuth(url.QueryEscape(i.options.Client.ID), url.QueryEscape(i.options.Client.Secret))
	return request, nil
}

// introspect distinguishes the refusal of our credentials from an inactive token.
func (i *Introspection) introspect(request *http.Request) (found introspection, err error) {
	got, err := i.client.send(request)
	switch {
	case err != nil:
		return found, err
	case got.status == http.StatusUnauthorized, got.status == http.StatusForbidden:
		return found, mistake(fmt.Sprintf("it answered %d: it does not accept our client id and secret: check them",
			got.status))
	case got.status != http.StatusOK:
		return found, problem(fmt.Sprintf("it answered %d instead of 200", got.status))
	case got.mediaType != "application/json":
		return found, mistake("its answer is not application/json: is this the introspection endpoint?")
	}
	if err := got.read(&found, "active", "sub", "jti", "scope", "exp", "roles"); err != nil {
		return found, err
	}
	if found.Active == nil {
		return found, mistake("its answer has no \"active\": is this the introspection endpoint?")
	}
	return found, nil
}

func (i *Introspection) expired(found introspection) bool {
	return found.Expires != nil && float64(i.options.Now().Unix()) >= *found.Expires
}
