package pasteporttest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/pasteporttest"
)

func TestRead(t *testing.T) {
	site := pasteporttest.New(t)
	site.Serve(newLibrary(t, site.Config(libraryConfig()), bootstrap.WithRootCAs(site.RootCAs())))
	ada := site.Connect("ada-token", "books:read")
	result, err := ada.Session().CallTool(t.Context(), &mcp.CallToolParams{Name: "read", Arguments: title{"Emma"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := result.Content[0].(*mcp.TextContent).Text; got != "Emma for ada" {
		t.Errorf("got %q", got)
	}
}

func TestDocsShowTestRead(t *testing.T) {
	source, err := os.ReadFile("docs_test.go")
	check(t, err)
	page, err := os.ReadFile("../../docs/testing.md")
	check(t, err)
	_, after, _ := strings.Cut(string(source), "\nfunc TestRead(")
	body, _, found := strings.Cut(after, "\n}\n")
	if !found || !strings.Contains(string(page), "```go\nfunc TestRead("+body+"\n}\n```\n") {
		t.Error("docs/testing.md does not contain the current TestRead")
	}
}
