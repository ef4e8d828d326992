package load

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
)

// Redirect is the client's redirect URI; no server listens there.
const Redirect = "http://127.0.0.1:4321/callback"

const hostTokenPrefix = "bench_token-of-a-person-"

var people atomic.Int64

// newHostToken returns a different person's token each time, because Pasteport limits the
// connections per person.
func newHostToken() string { return hostToken(people.Add(1)) }

// LastHostToken returns the last person's token.
func LastHostToken() string { return hostToken(people.Load()) }

func hostToken(person int64) string { return fmt.Sprintf("%s%016d", hostTokenPrefix, person) }

// IsHostToken reports whether the pasted token is valid.
func IsHostToken(token string) bool { return strings.HasPrefix(token, hostTokenPrefix) }

// StandingToken is sent to servers that issue no tokens. It is as long as Pasteport's tokens, so
// that requests have the same size.
const StandingToken = "bench_one-token-for-everybody-where-none-is-giv"

// Client is an MCP client and its user's browser on one connection.
type Client struct {
	*Conn
	Site     *url.URL // the server
	ID       string   // client_id
	Resource string   // RFC 8707 resource; "" for none
	Scope    string
	Tokens   Tokens
	cookies  map[string]string
}

// Tokens are the client's current tokens.
type Tokens struct{ Access, Refresh string }

// Flow runs a whole code flow: consent page, form and code exchange.
func (c *Client) Flow() error {
	verifier := rand.Text() + rand.Text()
	code, err := c.code(verifier)
	if err != nil {
		return err
	}
	form := url.Values{
		"grant_type":    {"authorization_code"},
		"client_id":     {c.ID},
		"code":          {code},
		"code_verifier": {verifier},
		"redirect_uri":  {Redirect},
	}
	if c.Resource != "" {
		form.Set("resource", c.Resource)
	}
	return c.token(form)
}

// Page returns the request for the consent page.
func (c *Client) Page(verifier string) []byte {
	return Request(http.MethodGet, c.authorization(verifier), "", "", "Accept: text/html", "Accept-Language: en")
}

func (c *Client) authorization(verifier string) *url.URL {
	sum := sha256.Sum256([]byte(verifier))
	query := url.Values{
		"response_type":         {"code"},
		"client_id":             {c.ID},
		"redirect_uri":          {Redirect},
		"state":                 {verifier[:16]},
		"scope":                 {c.Scope},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(sum[:])},
		"code_challenge_method": {"S256"},
	}
	if c.Resource != "" {
		query.Set("resource", c.Resource)
	}
	if strings.Contains(c.Scope, "openid") {
		query.Set("prompt", "consent") // oidc-provider requires it for offline_access
	}
	target := c.Site.JoinPath("/oauth/authorize")
	target.RawQuery = query.Encode()
	return target
}

// code follows redirects and forms until the redirect to the client, and returns its code.
func (c *Client) code(verifier string) (string, error) {
	c.cookies = map[string]string{}
	target, method, form := c.authorization(verifier), http.MethodGet, ""
	for range 8 {
		answer, err := c.Do(Request(method, target, Form, form, c.browserHeaders()...))
		if err != nil {
			return "", err
		}
		for _, cookie := range answer.Cookies {
			name, value, _ := strings.Cut(cookie, "=")
			c.cookies[name] = value
		}
		switch answer.Status {
		case http.StatusOK:
			method = http.MethodPost
			if target, form, err = filledIn(target, string(answer.Body)); err != nil {
				return "", err
			}
		case http.StatusFound, http.StatusSeeOther:
			if target, err = target.Parse(answer.Location); err != nil {
				return "", err
			}
			if target.Host != c.Site.Host {
				return codeOf(target)
			}
			method, form = http.MethodGet, ""
		default:
			return "", fmt.Errorf("the browser got %d for %s %s: %.300s", answer.Status, method, target, answer.Body)
		}
	}
	return "", fmt.Errorf("the browser is sent from page to page, at last to %s", target)
}

func (c *Client) browserHeaders() []string {
	headers := []string{"Accept: text/html", "Accept-Language: en"}
	if len(c.cookies) > 0 {
		pairs := make([]string, 0, len(c.cookies))
		for name, value := range c.cookies {
			pairs = append(pairs, name+"="+value)
		}
		headers = append(headers, "Cookie: "+strings.Join(pairs, "; "))
	}
	return headers
}

func codeOf(target *url.URL) (string, error) {
	query := target.Query()
	if code := query.Get("code"); code != "" {
		return code, nil
	}
	return "", fmt.Errorf("the client got no code but %s %s", query.Get("error"), query.Get("error_description"))
}

// filledIn returns the form of an approval on a consent page.
func filledIn(page *url.URL, text string) (action *url.URL, form string, err error) {
	if action, err = page.Parse(html.UnescapeString(between(text, `action="`, `"`))); err != nil {
		return nil, "", err
	}
	values := url.Values{"decision": {"approve"}, "bearer_token": {newHostToken()}}
	if ticket := between(text, `name="ticket" value="`, `"`); ticket != "" {
		values.Set("ticket", ticket)
	}
	return action, values.Encode(), nil
}

func between(text, before, after string) string {
	_, rest, _ := strings.Cut(text, before)
	found, _, _ := strings.Cut(rest, after)
	return found
}

// Refresh renews the client's tokens.
func (c *Client) Refresh() error {
	return c.token(url.Values{"grant_type": {"refresh_token"}, "client_id": {c.ID},
		"refresh_token": {c.Tokens.Refresh}})
}

func (c *Client) token(form url.Values) error {
	answer, err := c.Do(Request(http.MethodPost, c.Site.JoinPath("/oauth/token"), Form, form.Encode()))
	if err != nil {
		return err
	}
	text := strings.ReplaceAll(string(answer.Body), `": "`, `":"`)
	c.Tokens = Tokens{between(text, `"access_token":"`, `"`), between(text, `"refresh_token":"`, `"`)}
	if answer.Status != http.StatusOK || c.Tokens.Access == "" || c.Tokens.Refresh == "" {
		return fmt.Errorf("the token endpoint answers %d: %.300s", answer.Status, answer.Body)
	}
	return nil
}

// Revoke revokes a refresh token.
func (c *Client) Revoke(refresh string) error {
	form := url.Values{"client_id": {c.ID}, "token": {refresh}, "token_type_hint": {"refresh_token"}}
	answer, err := c.Do(Request(http.MethodPost, c.Site.JoinPath("/oauth/revoke"), Form, form.Encode()))
	if err == nil && answer.Status != http.StatusOK {
		err = fmt.Errorf("the revocation endpoint answers %d: %.300s", answer.Status, answer.Body)
	}
	return err
}
