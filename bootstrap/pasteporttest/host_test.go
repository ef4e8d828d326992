package pasteporttest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	_ "github.com/onsi/ginkgo/v2" // its flags, which "go test ./..." passes to every package

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/pasteporttest"
	"github.com/pasteport/pasteport/domain/oauth"
)

// library is an example of a host.
type library struct {
	*echo.Echo
	authz *bootstrap.OAuthServer
}

// libraryConfig returns the production config of the library.
func libraryConfig() oauth.Config {
	return oauth.Config{
		Issuer: "https://library.example",
		Verifier: members{
			"ada-token": {Subject: "ada", Scopes: []string{"books:read", "books:write"}},
			"bob-token": {Subject: "bob", Scopes: []string{"books:read"}},
		},
		Scopes: []oauth.Scope{{Name: "books:read", Description: "Read books"},
			{Name: "books:write", Description: "Write books"}},
		MoreServers: []oauth.ProtectedServer{{Resource: "https://library.example/archive/mcp", Name: "Archive"}},
	}
}

// members are the tokens of the library with their owners.
type members map[string]oauth.Principal

// VerifyBearer implements oauth.BearerVerifier.
func (m members) VerifyBearer(_ context.Context, token string) (oauth.Principal, error) {
	if owner, known := m[token]; known {
		return owner, nil
	}
	return oauth.Principal{}, oauth.ErrUnknownBearer
}

type title struct {
	Title string `json:"title"`
}

// newLibrary builds the library in the four steps of a host.
func newLibrary(t testing.TB, config oauth.Config, options ...bootstrap.OAuthOption) *library {
	t.Helper()
	store, err := persistence.OpenSQLite(filepath.Join(t.TempDir(), "oauth.db"))
	check(t, err)
	t.Cleanup(func() { check(t, store.Close()) })
	authz, err := bootstrap.NewOAuthServer(config, store, options...)
	check(t, err)
	t.Cleanup(authz.Close)
	l := &library{echo.New(), authz}
	check(t, bootstrap.NewMCPServer(bookTools(), bootstrap.WithOAuth(authz), bootstrap.WithToolScopes(scopesOf)).
		Register(l.Echo))
	for _, more := range config.MoreServers {
		archive := mcp.NewServer(&mcp.Implementation{Name: "archive", Version: "1"}, nil)
		check(t, bootstrap.NewMCPServer(archive, bootstrap.WithOAuth(authz), bootstrap.WithResource(more.Resource)).
			Register(l.Echo))
	}
	return l
}

func bookTools() *mcp.Server {
	tools := mcp.NewServer(&mcp.Implementation{Name: "library", Version: "1"}, nil)
	answer := func(_ context.Context, request *mcp.CallToolRequest, book title) (*mcp.CallToolResult, any, error) {
		caller, _ := bootstrap.CallerOf(request)
		return &mcp.CallToolResult{
			Content: []mcp.Content{&mcp.TextContent{Text: book.Title + " for " + caller.Subject}}}, nil, nil
	}
	mcp.AddTool(tools, &mcp.Tool{Name: "read", Description: "Reads a book"}, answer)
	mcp.AddTool(tools, &mcp.Tool{Name: "write", Description: "Writes a book"}, answer)
	return tools
}

func scopesOf(tool string) oauth.Scopes { return oauth.NewScopes("books:" + tool) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fakeT replaces *testing.T in Example, which has none, and in tests that must fail.
type fakeT struct {
	testing.TB
	ctx     context.Context
	end     context.CancelFunc
	cleanup []func()
}

// failure is the message of a failed fakeT.
type failure string

func newFakeT() *fakeT {
	ctx, cancel := context.WithCancel(context.Background())
	return &fakeT{ctx: ctx, end: cancel}
}

// failureOf returns the failure message of a test, or "" if it passes.
func failureOf(test func(t testing.TB)) (message string) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case failure:
			message = string(reason)
		default:
			panic(reason)
		}
	}()
	t := newFakeT()
	defer t.finish()
	test(t)
	return ""
}

func (f *fakeT) Helper()                           {}
func (f *fakeT) Context() context.Context          { return f.ctx }
func (f *fakeT) Output() io.Writer                 { return io.Discard }
func (f *fakeT) Cleanup(act func())                { f.cleanup = append(f.cleanup, act) }
func (f *fakeT) Fatal(args ...any)                 { panic(failure(fmt.Sprint(args...))) }
func (f *fakeT) Fatalf(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

// TempDir returns a folder that is removed at the end.
func (f *fakeT) TempDir() string {
	folder, err := os.MkdirTemp("", "pasteporttest")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// finish ends the test like the testing package.
func (f *fakeT) finish() {
	f.end()
	for _, act := range slices.Backward(f.cleanup) {
		act()
	}
}

// open serves a library with this config.
func open(t testing.TB, config oauth.Config) (*pasteporttest.Site, *library) {
	t.Helper()
	site := pasteporttest.New(t)
	l := newLibrary(t, site.Config(config), bootstrap.WithRootCAs(site.RootCAs()))
	site.Serve(l)
	return site, l
}

// expectRefusal fails the test unless err is a refusal with this code and a description that
// contains part.
func expectRefusal(t *testing.T, err error, status int, code, part string) {
	t.Helper()
	var refusal *pasteporttest.Refusal
	if !errors.As(err, &refusal) || refusal.Status != status || refusal.Code != code ||
		!strings.Contains(refusal.Description, part) {
		t.Errorf("got %v (%#v), want a refusal with %d, %q and %q", err, refusal, status, code, part)
	}
}

func TestScopesOfConnection(t *testing.T) {
	t.Parallel()
	site, _ := open(t, libraryConfig())
	for _, test := range []struct {
		token              string
		requested, granted []string
	}{
		{"ada-token", nil, []string{"books:read", "offline_access"}},
		{"ada-token", []string{"books:write"}, []string{"books:write", "offline_access"}},
		{"ada-token", []string{"books:read", "books:write"}, []string{"books:read", "books:write", "offline_access"}},
		{"bob-token", []string{"books:read", "books:write"}, []string{"books:read", "offline_access"}},
	} {
		granted := site.Connect(test.token, test.requested...).Scopes()
		slices.Sort(granted)
		if !slices.Equal(granted, test.granted) {
			t.Errorf("%s with %v: got %v, want %v", test.token, test.requested, granted, test.granted)
		}
	}
}

func TestRefusedConnections(t *testing.T) {
	t.Parallel()
	site, _ := open(t, libraryConfig())
	_, err := site.TryConnect("wrong-token")
	expectRefusal(t, err, http.StatusForbidden, "", "does not know that token")
	_, err = site.TryConnect("")
	expectRefusal(t, err, http.StatusBadRequest, "", "Paste your token first")
	_, err = site.TryConnect("bob-token", "books:write")
	expectRefusal(t, err, http.StatusSeeOther, "access_denied", "may not grant")
	_, err = site.TryConnect("ada-token", `books"read`)
	expectRefusal(t, err, http.StatusSeeOther, "invalid_scope", "")
}

func TestFurtherServer(t *testing.T) {
	t.Parallel()
	site, _ := open(t, libraryConfig())
	archive := site.At("/archive/mcp")
	ada := archive.Connect("ada-token")
	if name := ada.Session().InitializeResult().ServerInfo.Name; name != "archive" {
		t.Errorf("the session is with %q", name)
	}
	if got := status(t, ada, site.URL()+"/mcp"); got != http.StatusUnauthorized {
		t.Errorf("the token of the archive returns %d at another server", got)
	}
}

func TestMessagesOfFailures(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do   func(t testing.TB)
		want string
	}{
		"wrong token": {func(t testing.TB) {
			site, _ := open(t, libraryConfig())
			site.Connect("wrong-token")
		}, "does not know that token"},
		"no config": {func(t testing.TB) {
			pasteporttest.New(t).Connect("ada-token")
		}, "build the OAuth server from Site.Config"},
		"no RootCAs": {func(t testing.TB) {
			site := pasteporttest.New(t)
			site.Serve(newLibrary(t, site.Config(libraryConfig())))
			site.Connect("ada-token")
		}, "; pass bootstrap.WithRootCAs(site.RootCAs()) to NewOAuthServer"},
		"refused refresh": {func(t testing.TB) {
			site, _ := open(t, libraryConfig())
			ada := site.Connect("ada-token")
			ada.End()
			ada.Refresh()
		}, "refreshing the connection: the site returned 400 Bad Request: invalid_grant"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := failureOf(test.do); !strings.Contains(got, "pasteporttest: ") ||
				!strings.Contains(got, test.want) {
				t.Errorf("the test fails with %q, want %q", got, test.want)
			}
		})
	}
}

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
