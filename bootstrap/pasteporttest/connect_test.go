package pasteporttest_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	_ "github.com/onsi/ginkgo/v2" // its flags, which "go test ./..." passes to every package

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/pasteporttest"
	"github.com/pasteport/pasteport/domain/oauth"
)

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

func TestRefusedByAllowClient(t *testing.T) {
	t.Parallel()
	config := libraryConfig()
	config.AllowClient = func(host string) bool { return host == "claude.ai" }
	site, _ := open(t, config)
	site.Connect("ada-token")
	adjusted := site.Config(config)
	if !adjusted.AllowClient("claude.ai") || adjusted.AllowClient("other.example") {
		t.Error("AllowClient does not apply the site's own rule to other clients")
	}
}

func TestProblemPageIsRefusal(t *testing.T) {
	t.Parallel()
	site := pasteporttest.New(t)
	config := site.Config(libraryConfig())
	config.AllowClient = func(string) bool { return false }
	site.Serve(newLibrary(t, config, bootstrap.WithRootCAs(site.RootCAs())))
	_, err := site.TryConnect("ada-token")
	expectRefusal(t, err, http.StatusForbidden, "", "app")
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
		"not served": {func(t testing.TB) {
			site := pasteporttest.New(t)
			site.Config(libraryConfig())
			site.Connect("ada-token")
		}, "pass the site's Echo to Site.Serve"},
		"served twice": {func(t testing.TB) {
			site, l := open(t, libraryConfig())
			site.Serve(l)
		}, "Serve is called twice"},
		"no RootCAs": {func(t testing.TB) {
			site := pasteporttest.New(t)
			site.Serve(newLibrary(t, site.Config(libraryConfig())))
			site.Connect("ada-token")
		}, "; pass bootstrap.WithRootCAs(site.RootCAs()) to NewOAuthServer"},
		"nothing registered": {func(t testing.TB) {
			site := pasteporttest.New(t)
			site.Config(libraryConfig())
			site.Serve(echo.New())
			site.Connect("ada-token")
		}, "the site has no MCP server with OAuth: it returned 404"},
		"refused refresh": {func(t testing.TB) {
			site, _ := open(t, libraryConfig())
			ada := site.Connect("ada-token")
			ada.End()
			ada.Refresh()
		}, "refreshing the connection: the site returned 400 Bad Request: invalid_grant"},
		"refused session": {func(t testing.TB) {
			site, _ := open(t, libraryConfig())
			ada := site.Connect("ada-token")
			ada.End()
			ada.Session()
		}, "opening a session"},
		"site that has gone": {func(t testing.TB) {
			site := pasteporttest.New(t)
			l := newLibrary(t, site.Config(libraryConfig()), bootstrap.WithRootCAs(site.RootCAs()))
			served := http.Handler(l)
			site.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { served.ServeHTTP(w, r) }))
			ada := site.Connect("ada-token")
			served = http.NotFoundHandler()
			ada.End()
		}, "ending the connection"},
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
