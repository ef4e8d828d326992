package demo

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
)

// steps describes a connection in order.
var steps = []string{
	"The client calls the MCP server without a token.",
	"The client reads the metadata of the protected resource.",
	"The client reads the metadata of the authorization server.",
	"The client sends the browser to the site, which fetches the client's metadata document.",
	"The browser shows the consent page.",
	"The person pastes the site's own token and approves.",
	"The browser takes an authorization code back to the client.",
	"The client exchanges the code and its PKCE verifier for tokens.",
	"The client lists the tools and creates an article.",
}

// progress prints each step as it happens. After a failure no other step runs.
type progress struct {
	terminal term.Terminal
	mu       sync.Mutex // held by the running step
	begun    atomic.Int32
	failed   error
}

// step prints the next step, runs act and prints its outcome.
func (p *progress) step(act func() (outcome string, err error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed != nil {
		return p.failed
	}
	number := p.begun.Add(1)
	p.terminal.Printf("%d. %s\n", number, p.terminal.Bold(steps[number-1]))
	began := time.Now()
	outcome, err := act()
	if err != nil {
		p.terminal.Printf("   %s, %s\n", p.terminal.Red("failed"), since(began))
		p.failed = fmt.Errorf("step %d of %d failed: %w", number, len(steps), err)
		return p.failed
	}
	p.terminal.Printf("   %s, %s: %s\n", p.terminal.Green("ok"), since(began), outcome)
	return nil
}

// stop fails the next step, unless a step has failed before.
func (p *progress) stop(err error) error { return p.step(func() (string, error) { return "", err }) }

func since(began time.Time) string {
	return fmt.Sprintf("%.1f ms", float64(time.Since(began))/float64(time.Millisecond))
}

// stepTransport is the transport of the client. It prints the steps that are HTTP exchanges.
type stepTransport struct{ progress *progress }

func (t stepTransport) RoundTrip(request *http.Request) (response *http.Response, err error) {
	next := t.progress.begun.Load() + 1
	for _, e := range exchanges {
		if e.step != next || e.method != request.Method || !strings.HasPrefix(request.URL.Path, e.path) {
			continue
		}
		err = t.progress.step(func() (outcome string, err error) {
			if response, err = http.DefaultTransport.RoundTrip(request); err != nil {
				return "", err
			}
			return e.check(response)
		})
		return response, err
	}
	return http.DefaultTransport.RoundTrip(request)
}
