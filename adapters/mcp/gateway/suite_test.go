package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

func TestGateway(t *testing.T) { suite.Run(t, "The gateway") }

const (
	alice     = "ppa_alice" // the only token
	issuer    = "https://cms.example"
	canonical = "https://cms.example/mcp"
)

type tokens struct{}

func (tokens) Authenticate(_ context.Context, bearer string, _ oauth.Resource) (oauth.Caller, error) {
	if bearer != alice {
		return oauth.Caller{}, oauth.Refuse(oauth.InvalidToken, "G7", "unknown", errors.New("it is another one"))
	}
	return oauth.Caller{Grant: "A", Subject: "alice"}, nil
}

// site is a gateway on a loopback port.
type site struct {
	*httptest.Server
	gateway *Gateway
}

// open returns a gateway to an upstream, with the options and the server changed.
func open(to Upstream, change func(o *Options, server *http.Server)) *site {
	e := echo.New()
	s := &site{Server: httptest.NewUnstartedServer(e)}
	o := Options{}
	o.Issuer, o.Resource, o.Authorization = issuer, oauth.NewResource(canonical), tokens{}
	o.AllowedHosts = []string{s.Listener.Addr().String()}
	change(&o, s.Config)
	s.gateway = New(to, o)
	s.gateway.Mount(e)
	s.Start()
	DeferCleanup(func() {
		s.gateway.Drain()
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// send returns a response of which the caller reads the body.
func (s *site) send(ctx context.Context, method, body string) *http.Response {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(ctx, method, s.URL+"/mcp", strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	r.Header.Set("Authorization", "Bearer "+alice)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	response, err := s.Client().Do(r)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(response.Body.Close)
	return response
}

const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}`

var _ = Describe("Checking configured headers", Label("U5"), func() {
	DescribeTable("refuses", func(name string) { Expect(checkHeader(name)).NotTo(Succeed()) },
		Entry(nil, "cookie"), Entry(nil, "authorization"), Entry(nil, "X-PASTEPORT-Subject"),
		Entry(nil, "x-forwarded-for"), Entry(nil, "X_Toolsets"), Entry(nil, "Mcp-Session-Id"),
		Entry(nil, ""), Entry(nil, "a b"), Entry(nil, "a:b"), Entry(nil, "Connection"), Entry(nil, "signature"),
		Entry(nil, "accept-encoding"))

	It("accepts others", func() { Expect(checkHeader("x-toolsets")).To(Succeed()) })
})

// endless is an Upstream whose streams end with their requests.
type endless struct{}

func (endless) Forward(
	w http.ResponseWriter,
	r *http.Request,
	_ message.Body,
	_ oauth.Caller,
	_ oauth.HostToken,
) error {
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
	return nil
}

var _ = Describe("The streams of one person through a gateway", Label("G20"), func() {
	const perPerson = 3
	var s *site
	BeforeEach(func() {
		s = open(endless{}, func(o *Options, _ *http.Server) {
			o.Limits = oauth.Limits{MaxSessions: 100, MaxSessionsPerPerson: perPerson}
		})
	})

	DescribeTable("stay limited after many", func(ctx context.Context, body string, status int) {
		for range 2 * perPerson {
			Expect(s.send(ctx, http.MethodPost, body)).To(HaveHTTPStatus(status))
		}
		for range 3 * perPerson {
			s.send(ctx, http.MethodGet, "")
		}
		Eventually(func() int {
			streams, _ := s.gateway.Open()
			return streams
		}).Should(Equal(perPerson))
	},
		Entry("requests", call, http.StatusAccepted),
		Entry("batches with a subscription and answers that are refused",
			"["+strings.Join([]string{
				`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}`,
				`{"jsonrpc":"2.0","id":2,"result":{}}`, `{"jsonrpc":"2.0","id":3,"result":{}}`, `{"Method":"x"}`,
			}, ",")+"]", http.StatusBadRequest),
	)
})

var _ = Describe("A slow upstream", Label("G16"), func() {
	It("may answer without a stream after the deadline of the server", func(ctx SpecContext) {
		const deadline = 50 * time.Millisecond
		release := make(chan struct{})
		behind := &silent{heard: make(chan struct{}), answer: func(w http.ResponseWriter) error {
			<-release
			return answering("application/json", "{}")(w)
		}}
		s := open(behind, func(_ *Options, server *http.Server) { server.WriteTimeout = deadline })
		answers := make(chan []byte, 1)
		go func() {
			defer GinkgoRecover()
			body, err := io.ReadAll(s.send(ctx, http.MethodPost, call).Body)
			Expect(err).NotTo(HaveOccurred())
			answers <- body
		}()
		Eventually(behind.heard).WithTimeout(5 * time.Second).Should(BeSent(struct{}{}))
		Consistently(answers, 4*deadline).ShouldNot(Receive())
		close(release)
		Eventually(answers).WithTimeout(5 * time.Second).Should(Receive(Equal([]byte("{}"))))
	}, SpecTimeout(10*time.Second))
})

// silent is an upstream that answers a call after the client has got the beginning of a stream.
type silent struct {
	heard  chan struct{}
	answer func(w http.ResponseWriter) error
}

// Forward implements Upstream.
func (s *silent) Forward(w http.ResponseWriter, _ *http.Request, _ message.Body, _ oauth.Caller,
	_ oauth.HostToken) error {
	<-s.heard
	return s.answer(w)
}

func answering(contentType, body string) func(http.ResponseWriter) error {
	return func(w http.ResponseWriter) error {
		w.Header().Set("Content-Type", contentType)
		_, err := io.WriteString(w, body)
		return err
	}
}

var _ = Describe("An upstream that is silent for long", Label("U4"), func() {
	ask := func(ctx context.Context, behind *silent, accept, body string) *http.Response {
		s := open(behind, func(*Options, *http.Server) {})
		s.gateway.silence = time.Millisecond
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/mcp", strings.NewReader(body))
		Expect(err).NotTo(HaveOccurred())
		r.Header.Set("Authorization", "Bearer "+alice)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", accept)
		answer, err := s.Client().Do(r)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(answer.Body.Close)
		return answer
	}
	const both = "application/json, text/event-stream"

	DescribeTable("gives a client a stream with the answer as its event:",
		func(ctx SpecContext, answer func(http.ResponseWriter) error, event string) {
			behind := &silent{heard: make(chan struct{}), answer: answer}
			got := ask(ctx, behind, both, call)
			Expect(got).To(HaveHTTPHeaderWithValue("Content-Type", "text/event-stream"))
			close(behind.heard)
			Expect(io.ReadAll(got.Body)).To(BeEquivalentTo(": ok\n\n" + event))
		},
		Entry("JSON", answering("application/json", "{\"jsonrpc\":\"2.0\",\n \"id\":1,\"result\":{}}"),
			"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"),
		Entry("a stream", answering("text/event-stream", "data: 1\n\ndata: 2\n\n"), "data: 1\n\ndata: 2\n\n"),
		Entry("a failure", func(http.ResponseWriter) error {
			return &Failure{Status: http.StatusBadGateway, Rule: "U9", Text: "it is down"}
		}, "event: message\ndata: "+
			"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32000,\"message\":\"it is down\"}}\n\n"),
		Entry("what is not an answer", answering("text/html", "<h1>"), "event: message\ndata: "+
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"`+unfiltered+`"}}`+"\n\n"),
	)

	DescribeTable("keeps others waiting:", func(ctx SpecContext, accept, body string) {
		behind := &silent{heard: make(chan struct{}), answer: answering("application/json", "{}")}
		time.AfterFunc(50*time.Millisecond, func() { close(behind.heard) })
		got := ask(ctx, behind, accept, body)
		Expect(got).To(HaveHTTPHeaderWithValue("Content-Type", "application/json"))
		Expect(io.ReadAll(got.Body)).To(BeEquivalentTo("{}"))
	},
		Entry("a client that accepts only JSON", "application/json", call),
		Entry("one that opens a session, whose id is in the header", both,
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`),
		Entry("a notification", both, `{"jsonrpc":"2.0","method":"notifications/initialized"}`),
	)
})
