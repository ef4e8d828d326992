package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
)

// steps describes a connection in order.
var steps = []string{
	"The client calls the MCP server without a token.",
	"The client reads the metadata of the protected resource.",
	"The client reads the metadata of the authorization server.",
	"The client sends the browser to the site, which fetches the client's metadata document.",
	"The browser shows the consent page.",
	"The person pastes the site's own token and approves.",
	"The browser takes an authorization code back to the client.",
	"The client exchanges the code and its PKCE verifier for tokens.",
	"The client lists the tools and creates an article.",
}

// progress prints each step as it happens. After a failure no other step runs.
type progress struct {
	terminal term.Terminal
	mu       sync.Mutex // held by the running step
	begun    atomic.Int32
	failed   error
}

// step prints the next step, runs act and prints its outcome.
func (p *progress) step(act func() (outcome string, err error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed != nil {
		return p.failed
	}
	number := p.begun.Add(1)
	p.terminal.Printf("%d. %s\n", number, p.terminal.Bold(steps[number-1]))
	began := time.Now()
	outcome, err := act()
	if err != nil {
		p.terminal.Printf("   %s, %s\n", p.terminal.Red("failed"), since(began))
		p.failed = fmt.Errorf("step %d of %d failed: %w", number, len(steps), err)
		return p.failed
	}
	p.terminal.Printf("   %s, %s: %s\n", p.terminal.Green("ok"), since(began), outcome)
	return nil
}

// stop fails the next step, unless a step has failed before.
func (p *progress) stop(err error) error { return p.step(func() (string, error) { return "", err }) }

func since(began time.Time) string {
	return fmt.Sprintf("%.1f ms", float64(time.Since(began))/float64(time.Millisecond))
}

// stepTransport is the transport of the client. It prints the steps that are HTTP exchanges.
type stepTransport struct{ progress *progress }

func (t stepTransport) RoundTrip(request *http.Request) (response *http.Response, err error) {
	next := t.progress.begun.Load() + 1
	for _, e := range exchanges {
		if e.step != next || e.method != request.Method || !strings.HasPrefix(request.URL.Path, e.path) {
			continue
		}
		err = t.progress.step(func() (outcome string, err error) {
			if response, err = http.DefaultTransport.RoundTrip(request); err != nil {
				return "", err
			}
			return e.check(response)
		})
		return response, err
	}
	return http.DefaultTransport.RoundTrip(request)
}

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
	return "", errors.Join(fmt.Errorf("the MCP server responded with %s instead of a 401 with its metadata URL",
		response.Status), err)
}

func checkResource(response *http.Response) (string, error) {
	metadata, err := peek[oauthex.ProtectedResourceMetadata](response)
	return fmt.Sprintf("%s is protected by %s", metadata.Resource, strings.Join(metadata.AuthorizationServers, ", ")),
		err
}

func checkServer(response *http.Response) (string, error) {
	metadata, err := peek[oauthex.AuthServerMeta](response)
	return fmt.Sprintf("authorization at %s, PKCE with %s", metadata.AuthorizationEndpoint,
		strings.Join(metadata.CodeChallengeMethodsSupported, ", ")), err
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
	return fmt.Sprintf("an access token for %s and a refresh token, scope %q",
		time.Duration(tokens.Seconds)*time.Second, tokens.Scope), err
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
