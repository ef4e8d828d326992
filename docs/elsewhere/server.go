// A Go MCP server with net/http that accepts the tokens of "pasteport server":
//
//	SECRET=… go run server.go
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

var (
	issuer   = cmp.Or(os.Getenv("ISSUER"), "http://127.0.0.1:8080")
	address  = "127.0.0.1:" + cmp.Or(os.Getenv("PORT"), "3000")
	resource = cmp.Or(os.Getenv("RESOURCE"), "http://"+address+"/mcp") // the URL that clients connect to
	client   = &http.Client{Timeout: 10 * time.Second}
)

var errNoAnswer = errors.New("tokens cannot be checked just now")

const metadataPath = "/.well-known/oauth-protected-resource/mcp" // for a resource with the path /mcp

// verify asks the authorization server about an access token (RFC 7662).
func verify(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	form := strings.NewReader(url.Values{"token": {token}}.Encode())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, issuer+"/oauth/introspect", form)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.SetBasicAuth(url.QueryEscape(resource), os.Getenv("SECRET")) // the name is encoded (RFC 6749)
	response, err := client.Do(request)
	if err != nil {
		log.Print(err) // the error of this function goes to the client
		return nil, errNoAnswer
	}
	defer response.Body.Close()
	var claims struct {
		Active               bool
		Sub, Username, Scope string
		Roles                []string
		Exp                  int64
	}
	if err := json.NewDecoder(response.Body).Decode(&claims); err != nil || response.StatusCode != http.StatusOK {
		log.Printf("the introspection endpoint answered %s", response.Status)
		return nil, errNoAnswer
	}
	if !claims.Active {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{
		Scopes:     strings.Fields(claims.Scope),
		Expiration: time.Unix(claims.Exp, 0),
		UserID:     claims.Sub,
		Extra:      map[string]any{"account": cmp.Or(claims.Username, claims.Sub), "roles": claims.Roles},
	}, nil
}

// allowPages lets web pages of any site call the server with a token, and answers their preflights.
func allowPages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Access-Control-Allow-Origin", "*")
		header.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
		header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, Last-Event-ID, "+
			"MCP-Protocol-Version, MCP-Session-Id, Mcp-Method, Mcp-Name")
		header.Set("Access-Control-Expose-Headers", "WWW-Authenticate, MCP-Session-Id")
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

var notes = struct {
	sync.Mutex
	all []string
}{all: []string{"welcome"}}

type note struct {
	Text string `json:"text"`
}

func listNotes(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
	notes.Lock()
	defer notes.Unlock()
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Join(notes.all, "\n")}}}, nil, nil
}

func addNote(_ context.Context, r *mcp.CallToolRequest, n note) (*mcp.CallToolResult, any, error) {
	if !slices.Contains(r.Extra.TokenInfo.Scopes, "notes:write") {
		return nil, nil, errors.New("the app may not write notes: connect it again and allow it")
	}
	notes.Lock()
	defer notes.Unlock()
	notes.all = append(notes.all, fmt.Sprintf("%v: %s", r.Extra.TokenInfo.Extra["account"], n.Text))
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "added"}}}, nil, nil
}

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "list_notes", Description: "List the notes"}, listNotes)
	mcp.AddTool(server, &mcp.Tool{Name: "add_note", Description: "Add a note"}, addNote)
	serve := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	metadata, err := url.Parse(resource)
	if err != nil {
		log.Fatal(err)
	}
	metadata.Path = metadataPath
	protect := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{
		ResourceMetadataURL: metadata.String(),
		Scopes:              []string{"notes:read"},
	})
	http.Handle("/mcp", allowPages(protect(serve)))
	http.Handle(metadataPath, allowPages(auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource:               resource,
		AuthorizationServers:   []string{issuer},
		ScopesSupported:        []string{"notes:read"},
		BearerMethodsSupported: []string{"header"},
	})))
	fmt.Println("serving", resource)
	log.Fatal((&http.Server{Addr: address, ReadHeaderTimeout: 10 * time.Second}).ListenAndServe())
}
