package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/pasteporttest/browser"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// walk runs the client through all steps.
func (d *demo) walk(ctx context.Context) error {
	began := time.Now()
	report := &progress{terminal: d.terminal}
	person := &approval{progress: report, client: d.client, person: browser.Person{Token: d.token}}
	session, err := d.connect(ctx, stepTransport{report}, person.visit)
	if err != nil {
		return report.stop(err)
	}
	defer session.Close()
	if err := report.step(func() (string, error) { return useTools(ctx, session) }); err != nil {
		return err
	}
	d.terminal.Printf("\nConnected in %s.\n", since(began))
	return nil
}

// agent is the User-Agent of the newest connection.
func (d *demo) agent() string { return fmt.Sprintf("pasteport-demo/%d", d.connects) }

// connect connects the SDK's client over HTTP; browse plays the browser.
func (d *demo) connect(ctx context.Context, network http.RoundTripper,
	browse auth.AuthorizationCodeFetcher) (*sdk.ClientSession, error) {
	d.connects++
	traffic := &http.Client{Transport: agentTransport{d.agent(), network}}
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		ClientIDMetadataDocumentConfig: &auth.ClientIDMetadataDocumentConfig{URL: d.client.id},
		RedirectURL:                    d.client.redirect,
		AuthorizationCodeFetcher:       browse,
		RequestRefreshToken:            true,
		Client:                         traffic,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the client: %w", err)
	}
	once := &onceHandler{OAuthHandler: handler}
	client := sdk.NewClient(&sdk.Implementation{Name: "pasteport-demo", Title: clientName, Version: service.Version()},
		nil)
	session, err := client.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint:             d.service.Authz.Resources()[0].Resource.String(),
		HTTPClient:           traffic,
		OAuthHandler:         once,
		DisableStandaloneSSE: true,
	}, nil)
	if once.failed != nil {
		return nil, once.failed
	}
	return session, err
}

// onceHandler authorizes once. The SDK would authorize again after a failure, in an older protocol
// version, and after its token is refused.
type onceHandler struct {
	auth.OAuthHandler
	taken  bool
	failed error
}

func (c *onceHandler) Authorize(ctx context.Context, request *http.Request, response *http.Response) error {
	if !c.taken {
		c.taken = true
		c.failed = c.OAuthHandler.Authorize(ctx, request, response)
		return c.failed
	}
	_ = response.Body.Close()
	if c.failed != nil {
		return c.failed
	}
	return refusedBy(response)
}

// refusal is the reason why a server refuses a token.
type refusal string

func (r refusal) Error() string { return string(r) }

// refusedBy returns the reason that the response gives.
func refusedBy(response *http.Response) error {
	challenges, _ := oauthex.ParseWWWAuthenticate(response.Header.Values("WWW-Authenticate"))
	for _, challenge := range challenges {
		if code := challenge.Params["error"]; code != "" {
			return refusal(fmt.Sprintf("the MCP server returned %s, %s: %q", response.Status, code,
				challenge.Params["error_description"]))
		}
	}
	return refusal("the MCP server returned " + response.Status)
}

func useTools(ctx context.Context, session *sdk.ClientSession) (string, error) {
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return "", fmt.Errorf("listing the tools: %w", err)
	}
	result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "create_article", Arguments: map[string]any{
		"title": "Written by an MCP client on " + time.Now().Format("2 January 2006 at 15:04:05"),
		"body":  "This article was created with a token that is valid for an hour and can be revoked at any time.",
	}})
	if err != nil {
		return "", fmt.Errorf("calling create_article: %w", err)
	}
	article, _ := result.StructuredContent.(map[string]any)
	slug, _ := article["slug"].(string)
	if result.IsError || slug == "" {
		said, _ := json.Marshal(result.Content) // all of it came as JSON
		return "", fmt.Errorf("create_article created no article: %s", said)
	}
	return fmt.Sprintf("%s; create_article wrote %q", term.Count(len(tools.Tools), "tool"), slug), nil
}
