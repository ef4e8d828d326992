package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// exchanges lists the steps that are visible as an HTTP exchange of the client.
var exchanges = []struct {
	step         int32
	method, path string
	check        func(*http.Response) (outcome string, err error)
}{
	{1, http.MethodPost, "/mcp", checkChallenge},
	{2, http.MethodGet, "/.well-known/oauth-protected-resource", checkResource},
	{3, http.MethodGet, "/.well-known/oauth-authorization-server", checkServer},
	{8, http.MethodPost, "/oauth/token", checkTokens},
}

func checkChallenge(response *http.Response) (string, error) {
	challenges, err := oauthex.ParseWWWAuthenticate(response.Header.Values("WWW-Authenticate"))
	for _, challenge := range challenges {
		metadata := challenge.Params["resource_metadata"]
		if metadata != "" && response.StatusCode == http.StatusUnauthorized {
			return "401, with the metadata at " + metadata, nil
		}
	}
	return "", errors.Join(fmt.Errorf("the MCP server responded with %s instead of a 401 with its metadata URL", response.Status), err)
}

func checkResource(response *http.Response) (string, error) {
	metadata, err := peek[oauthex.ProtectedResourceMetadata](response)
	return fmt.Sprintf("%s is protected by %s", metadata.Resource, strings.Join(metadata.AuthorizationServers, ", ")), err
}

func checkServer(response *http.Response) (string, error) {
	metadata, err := peek[oauthex.AuthServerMeta](response)
	return fmt.Sprintf("authorization at %s, PKCE with %s", metadata.AuthorizationEndpoint, strings.Join(metadata.CodeChallengeMethodsSupported, ", ")), err
}

func checkTokens(response *http.Response) (string, error) {
	tokens, err := peek[struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
		Seconds int64  `json:"expires_in"`
		Scope   string `json:"scope"`
	}](response)
	if err == nil && (tokens.Access == "" || tokens.Refresh == "") {
		err = errors.New("the access token or the refresh token is missing")
	}
	return fmt.Sprintf("an access token for %s and a refresh token, scope %q", time.Duration(tokens.Seconds)*time.Second, tokens.Scope), err
}

// peek decodes a JSON answer and leaves it for the client to read.
func peek[T any](response *http.Response) (content T, err error) {
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	switch {
	case err != nil:
		return content, fmt.Errorf("reading the response: %w", err)
	case response.StatusCode != http.StatusOK:
		return content, fmt.Errorf("the response is %s", response.Status)
	}
	if err := json.Unmarshal(body, &content); err != nil {
		return content, fmt.Errorf("decoding the response: %w", err)
	}
	return content, nil
}
