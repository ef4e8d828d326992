package features_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// World is a demo site with Pasteport on loopback, with its own folder, clock and log.
type World struct {
	Issuer   string
	Dir      string
	Database string // URL of a database server; "" is a SQLite file in Dir
	Token    string // the host token of the site's editor
	Clients  *ClientSite
	Clock    *Clock
	Log      *Log

	service *service.Service
	server  *httptest.Server
	adjust  func(*service.Config)
}

const editorToken = "demo_editor-token-of-the-specs"

// NewWorld starts a world that ends with the spec; adjust may change its settings.
func NewWorld(adjust ...func(*service.Config)) *World {
	w := newWorld(adjust...)
	w.start("127.0.0.1:0")
	DeferCleanup(func() { w.Stop() })
	return w
}

// EachWorld returns a world that starts anew before each spec of the container.
func EachWorld(adjust ...func(*service.Config)) *World {
	each := &World{}
	BeforeEach(func() {
		*each = *newWorld(adjust...)
		each.start("127.0.0.1:0")
		DeferCleanup(each.Stop)
	})
	return each
}

// WorldOn is NewWorld with a database.
func WorldOn(database string, adjust ...func(*service.Config)) *World {
	w := newWorld(adjust...)
	w.Database = database
	w.start("127.0.0.1:0")
	DeferCleanup(func() { w.Stop() })
	return w
}

func newWorld(adjust ...func(*service.Config)) *World {
	w := &World{
		Dir:     GinkgoT().TempDir(),
		Token:   editorToken,
		Clients: NewClientSite(),
		Clock:   NewClock(),
		Log:     &Log{},
	}
	if worldsOn != "" {
		w.Database = databaseServers[worldsOn].database()
	}
	w.copyDatabase()
	w.adjust = func(config *service.Config) {
		for _, change := range adjust {
			change(config)
		}
	}
	return w
}

func (w *World) start(addr string) {
	GinkgoHelper()
	listener := must(net.Listen("tcp", addr))
	w.open(listener)
	w.server = httptest.NewUnstartedServer(w.service.Echo)
	w.server.Listener = listener
	w.server.Config.RegisterOnShutdown(w.service.Drain)
	w.server.Start()
}

// open opens the service for the listener's address.
func (w *World) open(listener net.Listener) {
	GinkgoHelper()
	w.Issuer = "http://" + listener.Addr().String()
	config := service.Config{
		DataDir:      w.Dir,
		Development:  true,
		DoctorClient: true,
		EditorToken:  w.Token,
		RootCAs:      w.Clients.Roots(),
	}
	config.Database.URL = w.Database
	config.Issuer, config.Now = w.Issuer, w.Clock.Now
	config.Logger = slog.New(slog.NewJSONHandler(w.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.adjust(&config)
	w.service = must(service.Open(context.Background(), config))
}

// Stop shuts the world down in order.
func (w *World) Stop() {
	if w.server == nil {
		return
	}
	w.service.Drain()
	w.server.CloseClientConnections()
	w.server.Close()
	w.server = nil
	Expect(w.service.Close()).To(Succeed())
}

// Kept returns the flags with which a command finds the grants of this world.
func (w *World) Kept() []string {
	flags := []string{"--data", w.Dir}
	if w.Database != "" {
		flags = append(flags, "--database", w.Database)
	}
	return flags
}

// Restart stops the service and starts it again on the same folder and address.
func (w *World) Restart() {
	GinkgoHelper()
	w.Stop()
	w.start(w.Issuer[len("http://"):])
}

// Replica starts another service on the same folder, like a second process behind the same address:
// it has the first's issuer and listens at another address. adjust may change its settings.
func (w *World) Replica(adjust ...func(*service.Config)) *Replica {
	GinkgoHelper()
	other := &World{
		Dir:      w.Dir,
		Database: w.Database,
		Token:    w.Token,
		Clients:  w.Clients,
		Clock:    w.Clock,
		Log:      &Log{},
	}
	other.adjust = func(config *service.Config) {
		w.adjust(config)
		config.Issuer = w.Issuer
		for _, change := range adjust {
			change(config)
		}
	}
	other.start("127.0.0.1:0")
	DeferCleanup(other.Stop)
	return &Replica{other, other.Issuer}
}

// Replica is one of several services on one folder.
type Replica struct {
	*World
	Address string
}

// Site returns the demo site, for operations of its owner.
func (w *World) Site() *demosite.Site { return w.service.Site }

// LoseSite removes the file of the demo site.
func (w *World) LoseSite() {
	GinkgoHelper()
	Expect(os.Remove(filepath.Join(w.Dir, "site.json"))).To(Succeed())
}

// EndGrantsOf ends all grants of a host token, like a site that revokes it.
func (w *World) EndGrantsOf(ctx context.Context, token string) (int, error) {
	return w.service.Authz.EndGrantsOf(ctx, token)
}

// MCP returns the URL of the protected MCP server.
func (w *World) MCP() string { return w.Issuer + "/mcp" }

// Clock is a clock that can be advanced and stopped.
type Clock struct {
	ahead   atomic.Int64
	stopped atomic.Pointer[time.Time]
}

// NewClock returns a clock at the real time.
func NewClock() *Clock { return &Clock{} }

// Now returns the real time, or the time at which the clock was stopped, plus all advances.
func (c *Clock) Now() time.Time {
	now := time.Now()
	if stopped := c.stopped.Load(); stopped != nil {
		now = *stopped
	}
	return now.Add(time.Duration(c.ahead.Load()))
}

// Stop stops the clock, so that rate limits refill only with Advance. A slow machine would
// otherwise change a count.
func (c *Clock) Stop() {
	now := time.Now()
	c.stopped.Store(&now)
}

// Advance moves the clock forward by d.
func (c *Clock) Advance(d time.Duration) { c.ahead.Add(int64(d)) }

// Log records the output of the server's logger.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// noRedirects is an HTTP client that returns redirects instead of following them.
var noRedirects = &http.Client{
	Timeout:       2 * patience, // also for the reading of a response
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Response is a response with its body.
type Response struct {
	*http.Response
	Text string
}

// Location returns the redirect target.
func (r Response) Target() *url.URL {
	GinkgoHelper()
	return must(url.Parse(r.Header.Get("Location")))
}

// Send sends a request and reads the whole response.
func Send(r *http.Request) Response {
	GinkgoHelper()
	answer, err := receive(r)
	if err != nil && r.Context().Value(losable{}) != nil {
		return Response{&http.Response{StatusCode: http.StatusBadGateway, Header: http.Header{}}, err.Error()}
	}
	Expect(err).NotTo(HaveOccurred())
	return answer
}

func receive(r *http.Request) (Response, error) {
	answer, err := noRedirects.Do(r)
	if err != nil {
		return Response{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return Response{answer, string(text)}, err
}

// losable marks the context of requests whose responses may be lost; Send then returns the error of
// a proxy.
type losable struct{}

// Get fetches a URL.
func Get(ctx context.Context, target string) Response {
	GinkgoHelper()
	return Send(must(http.NewRequestWithContext(ctx, http.MethodGet, target, nil)))
}

// Post sends a form; change may alter the request.
func Post(ctx context.Context, target string, form url.Values, change ...func(*http.Request)) Response {
	GinkgoHelper()
	return Send(formRequest(ctx, target, form, change...))
}

func formRequest(ctx context.Context, target string, form url.Values, change ...func(*http.Request)) *http.Request {
	GinkgoHelper()
	r := must(http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewBufferString(form.Encode())))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, apply := range change {
		apply(r)
	}
	return r
}

// must returns the value of a call that does not fail.
func must[T any](value T, err error) T {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return value
}
