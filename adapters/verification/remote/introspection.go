package remote

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/internal/outbound"
	"github.com/pasteport/pasteport/domain/oauth"
)

// IntrospectionOptions configures NewIntrospection.
type IntrospectionOptions struct {
	Transport
	URL              string
	ClientID, Secret string // of Pasteport at the endpoint (RFC 7662 §2.1)
	// ScopeCeiling limits grants to the scope of the token. It is off by default, because that
	// scope is of the site's own authorization server, whose scopes may differ from ours.
	ScopeCeiling bool
	Now          func() time.Time // nil for time.Now
}

// NewIntrospection returns a verifier that calls an RFC 7662 endpoint. A token is valid when it is
// active and not expired. sub is the subject, jti the token id, and roles (RFC 9068 §2.2.3.1) are
// the roles. The URL must be checked with outbound.Options.CheckURL.
func NewIntrospection(o IntrospectionOptions) *Verifier {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Verifier{
		client:  o.Client(),
		logger:  o.Logger,
		request: o.request,
		read:    o.read,
	}
}

func (o IntrospectionOptions) request(ctx context.Context, token string) (*http.Request, error) {
	form := url.Values{"token": {token}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, o.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.SetBasicAuth(url.QueryEscape(o.ClientID), url.QueryEscape(o.Secret)) // RFC 6749 §2.3.1
	return request, nil
}

// read distinguishes the refusal of our credentials from an inactive token.
func (o IntrospectionOptions) read(got answer) (person oauth.Principal, err error) {
	switch {
	case got.status == http.StatusUnauthorized, got.status == http.StatusForbidden:
		return person, mistake(fmt.Sprintf("it answered %d: it does not accept our client id and secret: check them",
			got.status))
	case got.status != http.StatusOK:
		return person, problem(fmt.Sprintf("it answered %d instead of 200", got.status))
	case !outbound.IsJSON(got.contentType):
		return person, mistake("its answer is not application/json: is this the introspection endpoint?")
	}
	var found struct { // RFC 7662 §2.2
		Active  *bool      `json:"active"`
		Subject string     `json:"sub"`
		Name    string     `json:"username"`
		TokenID identifier `json:"jti"`
		Scope   string     `json:"scope"`
		Expires *float64   `json:"exp"` // a NumericDate may have fractions (RFC 7519 §2)
		Roles   []string   `json:"roles"`
	}
	switch err = got.decode(&found); {
	case err != nil:
		return person, err
	case found.Active == nil:
		return person, mistake("its answer has no \"active\": is this the introspection endpoint?")
	case !*found.Active, found.Expires != nil && float64(o.Now().Unix()) >= *found.Expires:
		return person, oauth.ErrUnknownBearer
	}
	person = oauth.Principal{
		Subject: found.Subject,
		Name:    found.Name,
		TokenID: string(found.TokenID),
		Roles:   found.Roles,
	}
	if o.ScopeCeiling {
		person.Scopes = append([]string{}, strings.Fields(found.Scope)...) // not nil: an empty scope grants nothing
	}
	return person, nil
}
