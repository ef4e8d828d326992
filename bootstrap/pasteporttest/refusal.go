package pasteporttest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// Refusal is the error response of a site to a connection, a refresh or a call in a session.
type Refusal struct {
	Status      int    // of the HTTP response
	Code        string // the OAuth error code, such as invalid_scope; empty for a page, such as the one after a wrong token
	Description string // for people
}

// Error implements error.
func (r *Refusal) Error() string {
	text := fmt.Sprintf("the site returned %d %s", r.Status, http.StatusText(r.Status))
	for _, part := range []string{r.Code, r.Description} {
		if part != "" {
			text += ": " + part
		}
	}
	return text
}

// refusalOf converts an error of the token endpoint to a Refusal, and returns any other error unchanged.
func refusalOf(err error) error {
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		return err
	}
	return &Refusal{answer.Response.StatusCode, answer.ErrorCode, answer.ErrorDescription}
}

// challengeOf returns the Refusal in the response of an MCP server.
func challengeOf(response *http.Response) *Refusal {
	refusal := &Refusal{Status: response.StatusCode}
	challenges, err := oauthex.ParseWWWAuthenticate(response.Header.Values("WWW-Authenticate"))
	if err != nil {
		refusal.Description = err.Error()
	}
	for _, challenge := range challenges {
		if strings.EqualFold(challenge.Scheme, "Bearer") {
			refusal.Code, refusal.Description = challenge.Params["error"], challenge.Params["error_description"]
		}
	}
	return refusal
}
