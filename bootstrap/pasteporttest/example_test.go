package pasteporttest_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/pasteporttest"
)

// The test of a site: newLibrary is the site's own code, and t is the *testing.T of the test.
func Example() {
	t := newFakeT()
	defer t.finish()
	site := pasteporttest.New(t)
	site.Serve(newLibrary(t, site.Config(libraryConfig()), bootstrap.WithRootCAs(site.RootCAs())))

	ada := site.Connect("ada-token", "books:read")
	read := &mcp.CallToolParams{Name: "read", Arguments: title{"Emma"}}
	result, err := ada.Session().CallTool(t.Context(), read)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(result.Content[0].(*mcp.TextContent).Text)

	ada.Expire()
	_, err = ada.Session().CallTool(t.Context(), read)
	var refused *pasteporttest.Refusal
	fmt.Println(errors.As(err, &refused) && refused.Code == "invalid_token")

	ada.Refresh()
	_, err = ada.Session().CallTool(t.Context(), read)
	fmt.Println(err)

	_, err = site.TryConnect("wrong-token")
	reason, _, _ := strings.Cut(err.Error(), ".")
	fmt.Println(reason)
	// Output:
	// Emma for ada
	// true
	// <nil>
	// connecting: the site returned 403 Forbidden: This site does not know that token
}
