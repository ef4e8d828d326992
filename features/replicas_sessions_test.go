package features_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// NewReplicas starts replicas of one service with the same folder and issuer, and different
// addresses.
func NewReplicas(count int, adjust ...func(*service.Config)) (replicas []*World) {
	GinkgoHelper()
	first := NewWorld(advertising("", adjust...))
	replicas = append(replicas, first)
	for len(replicas) < count {
		another := &World{
			Dir:      first.Dir,
			Database: first.Database,
			Token:    first.Token,
			Clients:  first.Clients,
			Clock:    first.Clock,
			Log:      first.Log,
		}
		another.adjust = advertising(first.Issuer, adjust...)
		another.start("127.0.0.1:0")
		DeferCleanup(another.Stop)
		replicas = append(replicas, another)
	}
	return replicas
}

// advertising makes a service a replica at its own address, of the issuer unless it is the first.
func advertising(issuer string, adjust ...func(*service.Config)) func(*service.Config) {
	return func(config *service.Config) {
		config.Advertise = config.Issuer
		config.Issuer = cmp.Or(issuer, config.Issuer)
		for _, change := range adjust {
			change(config)
		}
	}
}

// Wiretap records what replicas send each other.
type Wiretap struct {
	addresses []string // of the replicas

	mu    sync.Mutex
	heard []Overheard
}

// Overheard is a request of one replica to another, and the response.
type Overheard struct {
	*http.Request
	body   string
	status int
}

// Tap is an adjustment that puts the wiretap in front of a replica.
func (t *Wiretap) Tap(config *service.Config) {
	config.Advertise = t.before(config.Advertise)
	t.addresses = append(t.addresses, config.Advertise)
}

// before returns an address that leads to another.
func (t *Wiretap) before(address string) string {
	GinkgoHelper()
	proxy := httputil.NewSingleHostReverseProxy(must(url.Parse(address)))
	proxy.FlushInterval = -1
	proxy.ModifyResponse = func(answer *http.Response) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		sent := answer.Request.Context().Value(overheardKey{}).(Overheard)
		sent.status = answer.StatusCode
		t.heard = append(t.heard, sent)
		return nil
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		sent := Overheard{Request: r.Clone(context.Background()), body: string(body)}
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), overheardKey{}, sent)))
	}))
	DeferCleanup(server.Close)
	DeferCleanup(server.CloseClientConnections)
	return server.URL
}

type overheardKey struct{}

// Heard returns the requests that were answered so far.
func (t *Wiretap) Heard() []Overheard {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.heard)
}

// Last returns the newest request.
func (t *Wiretap) Last() Overheard {
	GinkgoHelper()
	heard := t.Heard()
	Expect(heard).NotTo(BeEmpty())
	return heard[len(heard)-1]
}

// Repeat sends a request again to a replica, as somebody would who has overheard it.
func (o Overheard) Repeat(ctx context.Context, to *World, change ...func(*Overheard)) Response {
	GinkgoHelper()
	o.Request = o.Clone(ctx)
	for _, one := range change {
		one(&o)
	}
	r := must(http.NewRequestWithContext(ctx, o.Method, to.Issuer+o.URL.RequestURI(), strings.NewReader(o.body)))
	r.Header = o.Header
	return Send(r)
}

func (c *Conversation) At(replica *World) *Conversation {
	moved := *c
	moved.World, moved.target = replica, replica.Issuer+strings.TrimPrefix(c.target, c.World.Issuer)
	return &moved
}

// Spread sends each request to the next replica, as a load balancer does.
type Spread struct {
	replicas []*World
	next     atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (s *Spread) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = strings.TrimPrefix(s.replicas[s.next.Add(1)%int64(len(s.replicas))].Issuer, "http://")
	r.Host = r.URL.Host
	return http.DefaultTransport.RoundTrip(r)
}

var _ = Describe("Spreading the requests of a session over replicas", Label("replicas", "R1"), func() {
	var passed *Wiretap
	var replicas []*World
	var client *Client
	BeforeEach(func() {
		passed = new(Wiretap)
		replicas = NewReplicas(3, passed.Tap)
		client = replicas[0].NewClient()
	})

	DescribeTableSubtree("of revision", func(revision string) {
		It("lists and calls at every replica", func(ctx SpecContext) {
			talk := replicas[0].Converse(ctx, revision, client.Connect(ctx).Access)
			for _, replica := range replicas {
				moved := talk.At(replica)
				Expect(moved.Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(editorTools))
				slug := moved.Use(ctx, "create_article", params{"title": "Written at " + replica.Issuer}).Slug()
				Expect(talk.Use(ctx, "get_article", params{"slug": slug}).Text()).
					To(ContainSubstring("Written at " + replica.Issuer))
			}
		})

		It("passes calls of tools that are as they were at consent", Label("G23"), func(ctx SpecContext) {
			bound := NewReplicas(2, bindingTools)
			talk := bound[0].Converse(ctx, revision, bound[0].NewClient().Connect(ctx).Access)
			Expect(talk.At(bound[1]).Use(ctx, "create_article", params{"title": "Bound"}).Slug()).To(Equal("bound"))
		})

		It("continues with a token refreshed at another replica", func(ctx SpecContext) {
			tokens := client.Connect(ctx)
			talk := replicas[0].Converse(ctx, revision, tokens.Access)
			talk.Access = Post(ctx, replicas[1].Issuer+"/oauth/token", client.Refresh(tokens.Refresh)).Tokens().Access
			Expect(talk.At(replicas[2]).Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(editorTools))
		})

		It("accepts a message of 3 MiB", func(ctx SpecContext) {
			talk := replicas[0].Converse(ctx, revision, client.Connect(ctx).Access).At(replicas[1])
			large := params{"name": "create_article", "arguments": params{"title": "Large"},
				"_meta": params{"padding": strings.Repeat("x", 3<<20)}}
			Expect(talk.Ask(ctx, "tools/call", large).Slug()).To(Equal("large"))
		})

		It("is refused for another client, without a request between replicas",
			Label("R2", "G14"), func(ctx SpecContext) {
				talk := replicas[0].Converse(ctx, revision, client.Connect(ctx).Access)
				intruder := talk.At(replicas[1])
				intruder.Access = replicas[0].NewClient().Connect(ctx).Access
				before := len(passed.Heard())
				answer := intruder.Post(ctx, "tools/call",
					params{"name": "create_article", "arguments": params{"title": "Smuggled"}})
				Expect(answer.StatusCode).To(Equal(http.StatusNotFound))
				Expect(answer.Text).To(ContainSubstring("the session does not exist"))
				Expect(passed.Heard()).To(HaveLen(before))
				Expect(talk.At(replicas[1]).Post(ctx, "ping", params{}).StatusCode).
					To(BeElementOf(http.StatusOK, http.StatusAccepted))
				Expect(len(passed.Heard())).To(BeNumerically(">", before))
				Expect(talk.Use(ctx, "list_articles", params{}).Text()).NotTo(ContainSubstring("Smuggled"))
			})

		It("responds with 404 when the replica of the session has stopped", Label("R4"), func(ctx SpecContext) {
			replicas := NewReplicas(3)
			talk := replicas[2].Converse(ctx, revision, replicas[0].NewClient().Connect(ctx).Access)
			Expect(talk.At(replicas[1]).Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(editorTools))
			replicas[2].Stop()
			// The first answer may be 503: the connection was cut, not refused.
			Eventually(func() Response { return talk.At(replicas[1]).Post(ctx, "tools/list", params{}) }).
				WithTimeout(2 * time.Second).Should(And(HaveField("StatusCode", http.StatusNotFound),
				HaveField("Text", ContainSubstring("the session does not exist"))))
		})
	}, revisions(httpSSE, batching, headers, sessions))

	DescribeTableSubtree("of revision", func(revision string) {
		It("continues with a later grant of the same client and subject, and ends with the last of them",
			Label("G14", "G16", "R2"), func(ctx SpecContext) {
				first, later := client.Connect(ctx), client.Connect(ctx)
				talk := replicas[0].Converse(ctx, revision, first.Access)
				end := func(tokens Tokens) {
					GinkgoHelper()
					talk.Access = tokens.Access
					stream := talk.At(replicas[0]).Listen(ctx)
					Expect(Post(ctx, replicas[2].Issuer+"/oauth/revoke", url.Values{"token": {tokens.Refresh}}).
						StatusCode).To(Equal(http.StatusOK))
					Eventually(stream.Events).WithContext(ctx).WithTimeout(patience).
						Should(BeClosed(), "the session's replica knows of the end")
				}
				listed := func(tokens Tokens) int {
					talk.Access = tokens.Access
					return talk.At(replicas[1]).Post(ctx, "tools/list", params{}).StatusCode
				}
				Expect(listed(later)).To(Equal(http.StatusOK))
				end(first)
				Expect(listed(later)).To(Equal(http.StatusOK))
				end(later)
				Expect(listed(client.Connect(ctx))).To(Equal(http.StatusNotFound))
			})

		It("opens a stream at one replica and ends the session at another", func(ctx SpecContext) {
			talk := replicas[0].Converse(ctx, revision, client.Connect(ctx).Access)
			stream := talk.At(replicas[1]).Listen(ctx)
			Expect(Send(talk.At(replicas[2]).Request(ctx, http.MethodDelete)).StatusCode).
				To(Equal(http.StatusNoContent))
			Eventually(stream.Events).WithTimeout(patience).Should(BeClosed())
			for _, replica := range replicas {
				Expect(talk.At(replica).Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
			}
		})

		It("ends a stream when its own replica, or that of the session, shuts down",
			Label("R4"), func(ctx SpecContext) {
				access := client.Connect(ctx).Access
				stream := replicas[2].Converse(ctx, revision, access).At(replicas[1]).Listen(ctx)
				other := replicas[1].Converse(ctx, revision, access).At(replicas[2]).Listen(ctx)
				replicas[2].Stop()
				Eventually(stream.Events).WithTimeout(patience).Should(BeClosed())
				Eventually(other.Events).WithTimeout(patience).Should(BeClosed())
			})
	}, revisions(batching, headers, sessions))

	It("works for the Go SDK's own client behind a load balancer", Label("N9"), func(ctx SpecContext) {
		person := replicas[0].NewSDKClient()
		for _, revision := range []string{headers, sessions, stateless} {
			session := ConnectSDK(ctx, revision, &mcp.StreamableClientTransport{
				Endpoint: replicas[0].MCP(), OAuthHandler: person,
				HTTPClient: &http.Client{Transport: &Spread{replicas: replicas}},
			})
			for range 6 {
				Expect(must(session.ListTools(ctx, nil)).Tools).To(HaveLen(len(editorTools)))
			}
			Expect(session.Close()).To(Succeed())
		}
	})

	It("passes no token and no cookie on, and no client chooses what tools see",
		Label("R3", "J13"), func(ctx SpecContext) {
			tokens := client.Connect(ctx)
			for _, revision := range []string{httpSSE, sessions} {
				talk := replicas[0].Converse(ctx, revision, tokens.Access).At(replicas[1])
				answer := talk.Post(ctx, "tools/call",
					params{"name": "create_article", "arguments": params{"title": "Passed on"}}, func(r *http.Request) {
						r.Header.Set("Cookie", "c="+tokens.Access)
						r.Header.Set("X-Forwarded-Access-Token", replicas[0].Token)
					})
				Expect(answer.StatusCode).To(BeElementOf(http.StatusOK, http.StatusAccepted))
			}
			Expect(len(passed.Heard())).To(BeNumerically(">=", 2))
			for _, request := range passed.Heard() {
				Expect(request.Header).NotTo(Or(HaveKey("Authorization"), HaveKey("Cookie")))
				said := fmt.Sprint(request.URL, request.Header, request.body)
				for _, secret := range []string{tokens.Access, tokens.Refresh, replicas[0].Token} {
					Expect(said).NotTo(ContainSubstring(secret))
				}
			}
		})

	It("is not what a made-up session id can bring about", Label("R2"), func(ctx SpecContext) {
		var asked atomic.Int64
		foreign := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
		DeferCleanup(foreign.Close)
		talk := replicas[0].Converse(ctx, sessions, client.Connect(ctx).Access).At(replicas[1])
		genuine := strings.Split(talk.session, ".")
		Expect(genuine).To(HaveLen(3))
		Expect(talk.session).NotTo(ContainSubstring("127.0.0.1"))
		Expect(string(must(base64.RawURLEncoding.DecodeString(genuine[0])))).NotTo(ContainSubstring("127.0.0.1"))
		address := base64.RawURLEncoding.EncodeToString([]byte(foreign.URL))
		passedBefore := len(passed.Heard())
		for _, made := range []string{
			foreign.URL + "." + genuine[1] + "." + genuine[2], address + "." + genuine[1] + "." + genuine[2],
			address + "." + genuine[1], genuine[0] + "." + genuine[1], genuine[0] + ".x." + genuine[2],
			talk.session + "x", "x" + talk.session, "." + talk.session, talk.session + "." + genuine[2], "..",
			foreign.URL,
		} {
			talk.session = made
			Expect(talk.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound), made)
		}
		Expect(asked.Load()).To(BeZero())
		Expect(passed.Heard()).To(HaveLen(passedBefore))
	})
})
