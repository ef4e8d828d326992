package pasteporttest_test

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/pasteporttest"
	"github.com/pasteport/pasteport/domain/oauth"
)

func TestConfigKeepsPaths(t *testing.T) {
	t.Parallel()
	site := pasteporttest.New(t)
	public := libraryConfig()
	public.Issuer, public.Resource = "https://library.example/app", "https://mcp.library.example/app/tools"
	config := site.Config(public)
	for _, test := range []struct{ got, want string }{
		{config.Issuer, site.URL() + "/app"},
		{config.Resource, site.URL() + "/app/tools"},
		{config.MoreServers[0].Resource, site.URL() + "/archive/mcp"},
		{public.MoreServers[0].Resource, "https://library.example/archive/mcp"},
		{site.Config(oauth.Config{}).Issuer, site.URL()},
	} {
		if test.got != test.want {
			t.Errorf("got %s, want %s", test.got, test.want)
		}
	}
}

// outputT records the output of the test.
type outputT struct {
	*fakeT
	text bytes.Buffer
}

func (o *outputT) Output() io.Writer { return &o.text }

func TestLogOfSite(t *testing.T) {
	t.Parallel()
	o := &outputT{fakeT: newFakeT()}
	logger := pasteporttest.New(o).Config(libraryConfig()).Logger
	logger.Info("in time")
	o.finish()
	logger.Info("too late")
	if text := o.text.String(); !strings.Contains(text, "in time") || strings.Contains(text, "too late") {
		t.Errorf("the output of the test is %q", text)
	}
	own := slog.New(slog.DiscardHandler)
	if pasteporttest.New(t).Config(oauth.Config{Logger: own}).Logger != own {
		t.Error("the site's own logger is replaced")
	}
}

func TestSiteEndsBeforeItsStore(t *testing.T) {
	t.Parallel()
	fake := newFakeT()
	site := pasteporttest.New(fake)
	var open bool
	fake.Cleanup(func() { open = site.IsOpen() }) // like the store's cleanup
	site.Serve(newLibrary(fake, site.Config(libraryConfig()), bootstrap.WithRootCAs(site.RootCAs())))
	site.Connect("ada-token").Session()
	fake.finish()
	if open {
		t.Error("the site is served without its store")
	}
}
