package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

func registration() *auth.DynamicClientRegistrationConfig {
	return &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
		ClientName:              "goclient",
		RedirectURIs:            []string{redirectURL},
		TokenEndpointAuthMethod: "none",
		GrantTypes:              []string{"authorization_code", "refresh_token"},
	}}
}

// tokens returns the tokens of the program, which the SDK refreshes first.
func (p *program) tokens(ctx context.Context) (any, error) {
	source, err := p.handler.TokenSource(ctx)
	if err != nil {
		return nil, err
	}
	return source.Token()
}

// impatient tells the SDK that each access token expires in a second, so that it refreshes tokens
// without a wait for their real end.
type impatient struct{}

func (impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || r.Method != http.MethodPost || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	defer answer.Body.Close()
	var tokens map[string]any
	if err := json.NewDecoder(answer.Body).Decode(&tokens); err != nil {
		return nil, fmt.Errorf("reading the tokens: %w", err)
	}
	tokens["expires_in"] = 1
	text, err := json.Marshal(tokens)
	if err != nil {
		return nil, fmt.Errorf("writing the tokens: %w", err)
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	answer.Header.Del("Content-Length")
	return answer, nil
}
