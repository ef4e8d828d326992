// Package remote verifies host tokens over HTTP: NewEndpoint calls a URL of the site, and
// NewIntrospection an RFC 7662 endpoint. The token is sent only in the request. Logs quote nothing
// of a response, because it could contain the token.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pasteport/pasteport/adapters/internal/outbound"
	"github.com/pasteport/pasteport/domain/oauth"
)

const maxAnswer = 64 << 10 // bytes

// Transport configures the connections to the site.
type Transport struct {
	outbound.Options
	Logger *slog.Logger
}

// Verifier is an oauth.BearerVerifier that asks the site with one request.
type Verifier struct {
	client  *http.Client
	logger  *slog.Logger
	request func(ctx context.Context, token string) (*http.Request, error)
	read    func(response *http.Response, body []byte) (oauth.Principal, error)
}

type problem = outbound.Problem
type mistake = outbound.Mistake

// VerifyBearer implements oauth.BearerVerifier.
func (v *Verifier) VerifyBearer(ctx context.Context, token string) (oauth.Principal, error) {
	request, err := v.request(ctx, token)
	if err != nil {
		return oauth.Principal{}, fmt.Errorf("verifying a token: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	request.Header[outbound.Repeatable] = nil // not sent: it lets net/http send the request twice
	person, err := v.ask(request)
	if err != nil && !errors.Is(err, oauth.ErrUnknownBearer) {
		err = outbound.CannotVerify(ctx, v.logger, request.URL, err)
	}
	return person, err
}

func (v *Verifier) ask(request *http.Request) (oauth.Principal, error) {
	response, err := v.client.Do(request)
	if err != nil {
		return oauth.Principal{}, outbound.Reason(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return oauth.Principal{}, outbound.Reason(err)
	case len(body) > maxAnswer:
		return oauth.Principal{}, problem(fmt.Sprintf("it answered with more than %d bytes", maxAnswer))
	}
	return v.read(response, body)
}

// decode decodes the members, whatever the case of their names, and refuses duplicates.
func decode(body []byte, into any) error {
	if json.Unmarshal(body, into, json.MatchCaseInsensitiveNames(true)) != nil {
		return mistake("its JSON is malformed, or a member has another type than documented")
	}
	return nil
}

// identifier is a text, or a number, which sites often have as the id of a row.
type identifier string

func (i *identifier) UnmarshalJSON(value []byte) error {
	if jsontext.Value(value).Kind() == '0' { // any number
		*i = identifier(value)
		return nil
	}
	return json.Unmarshal(value, (*string)(i))
}

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
	return &Verifier{t.Client(), t.Logger, request, readEndpoint}
}

func readEndpoint(response *http.Response, body []byte) (oauth.Principal, error) {
	switch status := response.StatusCode; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return oauth.Principal{}, oauth.ErrUnknownBearer
	case status < 200 || status > 299:
		return oauth.Principal{}, problem(fmt.Sprintf("it answered %d instead of 2xx, 401 or 403", status))
	case !outbound.IsJSON(response.Header.Get("Content-Type")) || len(body) == 0:
		return oauth.Principal{}, nil
	}
	var found struct {
		Subject string     `json:"subject"`
		Name    string     `json:"name"`
		TokenID identifier `json:"token_id"`
		Roles   []string   `json:"roles"`
		Scopes  []string   `json:"scopes"`
	}
	if err := decode(body, &found); err != nil {
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

// IntrospectionOptions configures NewIntrospection.
type IntrospectionOptions struct {
	Transport
	URL              string
	ClientID, Secret string // of Pasteport at the endpoint (RFC 7662 §2.1)
	// ScopeCeiling limits grants to the scope of the token. It is off by default, because that
	// scope is of the site's own authorization server, whose scopes may differ from ours.
	ScopeCeiling bool
	Now          func() time.Time
}

// NewIntrospection returns a verifier that calls an RFC 7662 endpoint. A token is valid when it is
// active and not expired. sub is the subject, jti the token id, and roles (RFC 9068 §2.2.3.1) are
// the roles. The URL must be checked with outbound.Options.CheckURL.
func NewIntrospection(o IntrospectionOptions) *Verifier {
	return &Verifier{o.Client(), o.Logger, o.request, o.read}
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
func (o IntrospectionOptions) read(response *http.Response, body []byte) (person oauth.Principal, err error) {
	switch status := response.StatusCode; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return person, mistake(fmt.Sprintf("it answered %d: it does not accept our client id and secret: check them",
			status))
	case status != http.StatusOK:
		return person, problem(fmt.Sprintf("it answered %d instead of 200", status))
	case !outbound.IsJSON(response.Header.Get("Content-Type")):
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
	switch err = decode(body, &found); {
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
