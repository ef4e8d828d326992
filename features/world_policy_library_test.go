package features_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// NewLibrary starts an upstream with prompts and resources, whose lists have pages of two elements.
func NewLibrary() *UpstreamServer {
	granted := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	upstream := NewUpstreamOf(&mcp.ServerOptions{
		PageSize:         2,
		SubscribeHandler: granted,
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error {
			return nil
		},
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"completed"}}}, nil
		},
	})
	for _, name := range []string{"draft_letter", "draft_report", "fire_person"} {
		upstream.tools.AddPrompt(&mcp.Prompt{Name: name},
			func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{
					Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "got " + name}}}}, nil
			})
	}
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{
			Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "content of " + r.Params.URI}}}, nil
	}
	for _, uri := range []string{"file:///public/a.txt", "file:///public/b.txt", "file:///secret/pay.txt"} {
		upstream.tools.AddResource(&mcp.Resource{Name: uri, URI: uri}, read)
	}
	for _, uri := range []string{"file:///public/{name}", "file:///secret/{name}"} {
		upstream.tools.AddResourceTemplate(&mcp.ResourceTemplate{Name: uri, URITemplate: uri}, read)
	}
	return upstream
}

// people are the answers of a verifier for tokens. It costs much less than a file of tokens, whose
// hash is expensive on purpose.
type people map[string]string

// verify lets the site verify tokens over HTTP.
func (p people) verify() service.Verification { return overHTTP.configure(NewKeySite(p).URL("/token")) }

// ada lets the site verify one token, of a person whose name and roles are not ASCII.
func ada(token string) service.Verification {
	return people{token: `{"subject":"Adá,","roles":["editor","café,tea"]}`}.verify()
}

// restricting sets rules with an administrator and a guest.
func restricting() func(*service.Config) {
	verification := people{"token-of-ada": `{"subject":"ada","roles":["admin"]}`,
		"token-of-bob": `{"subject":"bob","roles":["guest"]}`}.verify()
	return func(c *service.Config) {
		static(verification)(c)
		c.Gateway.Policy = service.PolicyConfig{
			Tools:     []string{"allow delete_* for role:admin", "deny delete_*", "allow shout hang more_*"},
			Prompts:   []string{"deny fire_* for role:guest", "allow *"},
			Resources: []string{"allow * for role:admin", "allow file:///public/*"},
		}
	}
}

// withDanger adds the scope danger, which implies mcp.
func withDanger(c *service.Config) {
	c.Scopes = slices.Grow(c.Scopes, 2)[:2]
	c.Scopes[0].Name, c.Scopes[1].Name, c.Scopes[1].Implies = "mcp", "danger", []string{"mcp"}
}

// everyPage returns the names in all pages of a list.
func everyPage(ctx context.Context, talk *Conversation, method, list, named string) (names []string) {
	GinkgoHelper()
	p := params{}
	for range 10 {
		var page struct {
			Result map[string]json.RawMessage
		}
		Expect(json.Unmarshal([]byte(talk.raw(ctx, method, p)), &page)).To(Succeed())
		var elements []map[string]any
		Expect(json.Unmarshal(page.Result[list], &elements)).To(Succeed())
		for _, element := range elements {
			names = append(names, element[named].(string))
		}
		var next string
		if page.Result["nextCursor"] == nil {
			return names
		}
		Expect(json.Unmarshal(page.Result["nextCursor"], &next)).To(Succeed())
		p = params{"cursor": next}
	}
	Fail("the list does not end")
	return nil
}

// raw sends a request and returns the text of its response.
func (c *Conversation) raw(ctx context.Context, method string, p params) (text string) {
	GinkgoHelper()
	sent := c.Post(ctx, method, p)
	switch {
	case c.Revision == httpSSE:
		return c.stream.Next("message")
	case strings.HasPrefix(sent.Header.Get("Content-Type"), "text/event-stream"):
		for event := range events(strings.NewReader(sent.Text)) {
			text = event.Data
		}
		return text
	}
	return sent.Text
}
