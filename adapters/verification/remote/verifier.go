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
	read    func(answer) (oauth.Principal, error)
}

// answer is a response with its whole body.
type answer struct {
	status      int
	contentType string
	body        []byte
}

type (
	problem = outbound.Problem
	mistake = outbound.Mistake
)

// VerifyBearer implements oauth.BearerVerifier.
func (v *Verifier) VerifyBearer(ctx context.Context, token string) (oauth.Principal, error) {
	request, err := v.request(ctx, token)
	if err != nil {
		return oauth.Principal{}, fmt.Errorf("verifying a token: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	request.Header[outbound.Repeatable] = nil
	person := oauth.Principal{}
	got, err := v.send(request)
	if err == nil {
		person, err = v.read(got)
	}
	if err != nil && !errors.Is(err, oauth.ErrUnknownBearer) {
		err = outbound.CannotVerify(ctx, v.logger, request.URL, err)
	}
	return person, err
}

func (v *Verifier) send(request *http.Request) (answer, error) {
	response, err := v.client.Do(request)
	if err != nil {
		return answer{}, outbound.Reason(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return answer{}, outbound.Reason(err)
	case len(body) > maxAnswer:
		return answer{}, problem(fmt.Sprintf("it answered with more than %d bytes", maxAnswer))
	}
	return answer{response.StatusCode, response.Header.Get("Content-Type"), body}, nil
}

// decode decodes the members, whatever the case of their names, and refuses duplicates.
func (a answer) decode(into any) error {
	if json.Unmarshal(a.body, into, json.MatchCaseInsensitiveNames(true)) != nil {
		return mistake("its JSON is malformed, or a member has another type than documented")
	}
	return nil
}

// identifier is a text, or a number, which sites often have as the id of a row.
type identifier string

// UnmarshalJSON implements json.Unmarshaler.
func (i *identifier) UnmarshalJSON(value []byte) error {
	if jsontext.Value(value).Kind() == '0' {
		*i = identifier(value)
		return nil
	}
	return json.Unmarshal(value, (*string)(i))
}
