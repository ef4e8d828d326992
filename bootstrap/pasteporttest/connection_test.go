package pasteporttest_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/pasteporttest"
)

// status returns the status of an MCP server for a request of the connection. An accepted request
// has no body and gets 400.
func status(t *testing.T, c *pasteporttest.Connection, endpoint string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, http.NoBody)
	check(t, err)
	response, err := c.Client().Do(request)
	check(t, err)
	check(t, response.Body.Close())
	return response.StatusCode
}

// expectOpen fails the test unless the MCP server accepts requests of the connection, or refuses
// them if open is false.
func expectOpen(t *testing.T, site *pasteporttest.Site, c *pasteporttest.Connection, open bool) {
	t.Helper()
	if got := status(t, c, site.URL()+"/mcp"); (got == http.StatusUnauthorized) == open {
		t.Errorf("the MCP server returns %d", got)
	}
}

func callTool(t *testing.T, c *pasteporttest.Connection, tool string) error {
	t.Helper()
	_, err := c.Session().CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: title{"Emma"}})
	return err
}

func TestClient(t *testing.T) {
	t.Parallel()
	site, _ := open(t, libraryConfig())
	ada := site.Connect("ada-token")
	expectOpen(t, site, ada, true)
	ada.Expire()
	expectOpen(t, site, ada, false)
	ada.Refresh()
	expectOpen(t, site, ada, true)
	ada.End()
	expectOpen(t, site, ada, false)
	expectRefusal(t, ada.TryRefresh(), http.StatusBadRequest, "invalid_grant", "")
}

func TestSessionOutlivesAccessToken(t *testing.T) {
	t.Parallel()
	site, _ := open(t, libraryConfig())
	ada := site.Connect("ada-token")
	check(t, callTool(t, ada, "read"))
	for range 2 {
		session := ada.Session()
		ada.Expire()
		expectRefusal(t, callTool(t, ada, "read"), http.StatusUnauthorized, "invalid_token", "")
		ada.Refresh()
		check(t, callTool(t, ada, "read"))
		if ada.Session() != session {
			t.Error("there is another session")
		}
	}
}

func TestRefusedSession(t *testing.T) {
	t.Parallel()
	site, _ := open(t, libraryConfig())
	ada := site.Connect("ada-token")
	site.Advance(24 * time.Hour)
	_, err := ada.TrySession()
	expectRefusal(t, err, http.StatusUnauthorized, "invalid_token", "")
	ada.Refresh()
	check(t, callTool(t, ada, "read"))
}

func TestRefusalKeepsBody(t *testing.T) {
	t.Parallel()
	site := pasteporttest.New(t)
	library := newLibrary(t, site.Config(libraryConfig()), bootstrap.WithRootCAs(site.RootCAs()))
	site.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/mcp" {
			http.Error(w, "closed on Sundays", http.StatusForbidden)
			return
		}
		library.ServeHTTP(w, r)
	}))
	ada := site.Connect("ada-token")
	_, closed := ada.TrySession()
	_, wrong := site.TryConnect("wrong-token")
	ada.End()
	for body, err := range map[string]error{
		"closed on Sundays":       closed,
		"</html>":                 wrong,
		`"error":"invalid_grant"`: ada.TryRefresh(),
	} {
		var refusal *pasteporttest.Refusal
		if !errors.As(err, &refusal) || !strings.Contains(refusal.Body, body) {
			t.Errorf("got %v (%#v), want a refusal with the body %s", err, refusal, body)
		}
	}
	if !strings.HasSuffix(strings.TrimSpace(closed.Error()), "403 Forbidden: closed on Sundays") {
		t.Errorf("got %q", closed)
	}
}

func TestToolThatNeedsAnotherScope(t *testing.T) {
	t.Parallel()
	site, _ := open(t, libraryConfig())
	ada := site.Connect("ada-token", "books:read")
	expectRefusal(t, callTool(t, ada, "write"), http.StatusForbidden, "insufficient_scope", "")
	check(t, callTool(t, ada, "read"))
	check(t, callTool(t, site.Connect("ada-token", "books:write"), "write"))
}

func TestExpireMovesClockOnce(t *testing.T) {
	t.Parallel()
	config := libraryConfig()
	config.AccessTokenTTL = 20 * time.Minute
	site, _ := open(t, config)
	ada, bob := site.Connect("ada-token"), site.Connect("bob-token")
	began := site.Now()
	ada.Expire()
	bob.Expire()
	ada.Expire()
	if passed := site.Now().Sub(began); passed < 19*time.Minute || passed > 25*time.Minute {
		t.Errorf("%v have passed", passed)
	}
	expectOpen(t, site, bob, false)
	site.Advance(time.Hour)
	later := site.Now()
	ada.Expire()
	if site.Now().Before(later) {
		t.Error("the clock has moved back")
	}
}

func TestEndIsOfOneConnection(t *testing.T) {
	t.Parallel()
	site, _ := open(t, libraryConfig())
	one, other := site.Connect("ada-token"), site.Connect("ada-token")
	one.End()
	expectOpen(t, site, one, false)
	expectOpen(t, site, other, true)
}
