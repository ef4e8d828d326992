package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// redirect is where clients get their codes; nothing listens there.
const redirect = "http://127.0.0.1:4321/callback"

// Person is an honest person with a valid token, a browser and an MCP client.
type Person struct {
	browser
	token   string
	client  string // client_id
	session bool   // opens an MCP session, as clients before 2026-07-28 do
	waits   bool   // tries again when a page says so

	told            bool // a page has said when to try again
	access, refresh string
}

const patience = 40 * time.Second

// Visit logs in, calls the MCP server and opens the connections page.
func (p *Person) Visit(ctx context.Context) error {
	if err := p.LogIn(ctx); err != nil {
		return err
	}
	return p.Look(ctx)
}

// LogIn connects, refreshes and sends the first request.
func (p *Person) LogIn(ctx context.Context) error {
	if err := p.Connect(ctx); err != nil {
		return err
	}
	if err := p.Refresh(ctx); err != nil {
		return err
	}
	return p.Call(ctx)
}

// Connect approves on the consent page and exchanges the code.
func (p *Person) Connect(ctx context.Context) error {
	verifier := rand.Text() + rand.Text()
	page, err := p.open(ctx, p.authorization(verifier))
	if err != nil || page.status != http.StatusOK {
		return failed("open the consent page", page, err)
	}
	sent, err := p.fillIn(ctx, page, "approve")
	if err != nil || sent.status != http.StatusSeeOther {
		return failed("approve", sent, err)
	}
	target, err := url.Parse(sent.header.Get("Location"))
	if err != nil || target.Query().Get("code") == "" {
		return failed("get a code", sent, err)
	}
	return p.tokens(ctx, "exchange",
		url.Values{
			"grant_type":    {"authorization_code"},
			"code":          {target.Query().Get("code")},
			"code_verifier": {verifier},
			"redirect_uri":  {redirect},
			"resource":      {p.network.issuer + "/mcp"},
		})
}

func (p *Person) authorization(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return p.network.issuer + "/oauth/authorize?" + url.Values{
		"response_type":         {"code"},
		"client_id":             {p.client},
		"redirect_uri":          {redirect},
		"state":                 {verifier[:16]},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(sum[:])},
		"code_challenge_method": {"S256"},
		"scope":                 {"mcp offline_access"},
		"resource":              {p.network.issuer + "/mcp"},
	}.Encode()
}

// Refresh renews the tokens.
func (p *Person) Refresh(ctx context.Context) error {
	return p.tokens(ctx, "refresh", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {p.refresh}})
}

func (p *Person) tokens(ctx context.Context, step string, values url.Values) error {
	values.Set("client_id", p.client)
	got, err := p.post(ctx, p.network.issuer+"/oauth/token", values)
	if err != nil || got.status != http.StatusOK {
		return failed(step, got, err)
	}
	var tokens struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	err = json.Unmarshal([]byte(got.text), &tokens)
	p.access, p.refresh = tokens.Access, tokens.Refresh
	return err
}

// Look finds the connection on the connections page.
func (p *Person) Look(ctx context.Context) error {
	page, err := p.open(ctx, p.network.issuer+"/oauth/connections")
	if err != nil || page.status != http.StatusOK {
		return failed("open the connections page", page, err)
	}
	shown, err := p.fillIn(ctx, page, "show")
	if err != nil || shown.status != http.StatusOK || !strings.Contains(shown.text, "<article") {
		return failed("show connections", shown, err)
	}
	return nil
}

// fillIn pastes the token into the page's form, and again when the page says when.
func (p *Person) fillIn(ctx context.Context, page answer, decision string) (answer, error) {
	f, err := formIn(page)
	if err != nil {
		return page, err
	}
	for {
		got, err := p.post(ctx, f.action, f.filled(url.Values{"decision": {decision}, "bearer_token": {p.token}}))
		seconds, noNumber := strconv.Atoi(got.header.Get("Retry-After"))
		when := fmt.Sprintf("Try again in %d seconds", seconds)
		if err != nil || noNumber != nil || !strings.Contains(got.text, when) {
			return got, err
		}
		if p.told = true; !p.waits || pause(ctx, time.Duration(seconds)*time.Second) != nil {
			return got, nil
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func failed(step string, got answer, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	return fmt.Errorf("%s: the response is %s", step, got)
}
