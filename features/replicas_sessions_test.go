package features_test

import (
	"context"
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/features/broker"
)

// NewReplicas starts replicas of one service with the same folder, bus and issuer, and different
// addresses.
func NewReplicas(bus *broker.Broker, count int, adjust ...func(*service.Config)) (replicas []*World) {
	GinkgoHelper()
	adjusted := func(issuer string) func(*service.Config) {
		return func(config *service.Config) {
			for _, change := range append(adjust, overBus(bus, issuer)) {
				change(config)
			}
		}
	}
	first := NewWorld(adjusted(""))
	replicas = append(replicas, first)
	for len(replicas) < count {
		another := &World{
			Dir:     first.Dir,
			Token:   first.Token,
			Clients: first.Clients,
			Clock:   first.Clock,
			Log:     first.Log,
		}
		another.adjust = adjusted(first.Issuer)
		another.start("127.0.0.1:0")
		DeferCleanup(another.Stop)
		replicas = append(replicas, another)
	}
	return replicas
}

func overBus(bus *broker.Broker, issuer string) func(*service.Config) {
	return func(config *service.Config) {
		config.Bus = bus.ClientURL()
		if issuer != "" {
			config.Issuer = issuer
		}
	}
}

// At returns the same conversation with another replica.
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
	var bus *broker.Broker
	var replicas []*World
	var client *Client
	BeforeEach(func() {
		bus = broker.New()
		replicas = NewReplicas(bus, 3)
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
			bound := NewReplicas(bus, 2, bindingTools)
			talk := bound[0].Converse(ctx, revision, bound[0].NewClient().Connect(ctx).Access)
			Expect(talk.At(bound[1]).Use(ctx, "create_article", params{"title": "Bound"}).Slug()).To(Equal("bound"))
		})

		It("continues with a token refreshed at another replica", func(ctx SpecContext) {
			tokens := client.Connect(ctx)
			talk := replicas[0].Converse(ctx, revision, tokens.Access)
			talk.Access = Post(ctx, replicas[1].Issuer+"/oauth/token", client.Refresh(tokens.Refresh)).Tokens().Access
			Expect(talk.At(replicas[2]).Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(editorTools))
		})

		It("accepts a message of 900 KiB", func(ctx SpecContext) {
			talk := replicas[0].Converse(ctx, revision, client.Connect(ctx).Access).At(replicas[1])
			large := params{"name": "create_article", "arguments": params{"title": "Large"},
				"_meta": params{"padding": strings.Repeat("x", 900<<10)}}
			Expect(talk.Ask(ctx, "tools/call", large).Slug()).To(Equal("large"))
		})

		It("is refused for another client, without a message between replicas",
			Label("R2", "G14"), func(ctx SpecContext) {
				talk := replicas[0].Converse(ctx, revision, client.Connect(ctx).Access)
				intruder := talk.At(replicas[1])
				intruder.Access = replicas[0].NewClient().Connect(ctx).Access
				bus.Watch()
				answer := intruder.Post(ctx, "tools/call",
					params{"name": "create_article", "arguments": params{"title": "Smuggled"}})
				Expect(answer.StatusCode).To(Equal(http.StatusNotFound))
				Expect(answer.Text).To(ContainSubstring("there is no such session"))
				Expect(bus.Carried()).To(BeEmpty())
				Expect(talk.At(replicas[1]).Post(ctx, "ping", params{}).StatusCode).
					To(BeElementOf(http.StatusOK, http.StatusAccepted))
				Expect(bus.Carried()).NotTo(BeEmpty())
				Expect(talk.Use(ctx, "list_articles", params{}).Text()).NotTo(ContainSubstring("Smuggled"))
			})

		It("responds with 404 when the replica of the session has stopped", Label("R4"), func(ctx SpecContext) {
			talk := replicas[2].Converse(ctx, revision, client.Connect(ctx).Access)
			replicas[2].Stop()
			answer := talk.At(replicas[1]).Post(ctx, "tools/list", params{})
			Expect(answer.StatusCode).To(Equal(http.StatusNotFound))
			Expect(answer.Text).To(ContainSubstring("there is no such session"))
		})

		It("responds with 503 while the bus is down, serves other requests, and recovers",
			Label("R5"), func(ctx SpecContext) {
				access := client.Connect(ctx).Access
				talk := replicas[0].Converse(ctx, revision, access)
				bus.Stop()
				answer := talk.At(replicas[1]).Post(ctx, "tools/list", params{})
				Expect(answer.StatusCode).To(Equal(http.StatusServiceUnavailable))
				Expect(answer.Header.Get("Retry-After")).To(Equal("5"))
				Expect(answer.Header).NotTo(HaveKey("Www-Authenticate"))
				Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(editorTools))
				Expect(replicas[1].Call(ctx, access).StatusCode).To(Equal(http.StatusOK))
				Expect(replicas[1].Converse(ctx, revision, access).Ask(ctx, "tools/list", params{}).Tools()).
					To(ConsistOf(editorTools))

				bus.Start()
				Eventually(func() int { return talk.At(replicas[1]).Post(ctx, "ping", params{}).StatusCode }).
					WithContext(ctx).WithTimeout(patience).Should(BeElementOf(http.StatusOK, http.StatusAccepted))
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
				listed, err := session.ListTools(ctx, nil)
				Expect(err).NotTo(HaveOccurred())
				Expect(listed.Tools).To(HaveLen(len(editorTools)))
			}
			Expect(session.Close()).To(Succeed())
		}
	})

	It("responds with 404 for a stopped replica, after ten seconds if another subscriber listens on the bus",
		Label("long", "R4"), func(ctx SpecContext) {
			talk := replicas[2].Converse(ctx, sessions, client.Connect(ctx).Access)
			replicas[2].Stop()
			bus.Watch()
			Expect(talk.At(replicas[1]).Post(ctx, "tools/list", params{}).StatusCode).
				To(Equal(http.StatusServiceUnavailable))
			Eventually(func() int { return talk.At(replicas[1]).Post(ctx, "tools/list", params{}).StatusCode }).
				WithContext(ctx).WithTimeout(patience).Should(Equal(http.StatusNotFound))
		})

	It("sends no token over the bus, in subjects or messages", Label("R3", "J13"), func(ctx SpecContext) {
		bus.Watch()
		tokens := client.Connect(ctx)
		for _, revision := range []string{httpSSE, sessions} {
			talk := replicas[0].Converse(ctx, revision, tokens.Access).At(replicas[1])
			Expect(talk.Use(ctx, "create_article", params{"title": "Not on the bus"}).Slug()).NotTo(BeEmpty())
		}
		carried := strings.Join(bus.Carried(), "\n")
		Expect(carried).To(ContainSubstring("pasteport.replica."))
		for _, secret := range []string{tokens.Access, tokens.Refresh, replicas[0].Token, "Not on the bus",
			"create_article"} {
			Expect(carried).NotTo(ContainSubstring(secret))
			Expect(carried).NotTo(ContainSubstring(base64.StdEncoding.EncodeToString([]byte(secret))[:8]))
		}
	})

	It("executes no replayed bus message", Label("R3"), func(ctx SpecContext) {
		bus.Watch()
		access := client.Connect(ctx).Access
		for _, revision := range []string{httpSSE, sessions} {
			talk := replicas[0].Converse(ctx, revision, access)
			Expect(talk.At(replicas[1]).Use(ctx, "create_article", params{"title": "Only one over " + revision}).
				Slug()).NotTo(BeEmpty())
			before := talk.Use(ctx, "list_articles", params{}).Text()
			bus.Repeat()
			Expect(talk.At(replicas[1]).Ask(ctx, "tools/list", params{}).Tools()).
				To(ConsistOf(editorTools), "all earlier messages have arrived")
			bus.Repeat()
			Consistently(func() string {
				return talk.Use(ctx, "list_articles", params{}).Text()
			}, "200ms").Should(Equal(before))
		}
	})
})

var _ = Describe("Losing a replica", Label("replicas", "R4"), func() {
	It("that is killed ends its streams at other replicas, and its sessions return 404", func(ctx SpecContext) {
		bus, binary := broker.New(), BuildBinary()
		replica := NewWorld(overBus(bus, ""))
		access := replica.NewClient().Connect(ctx).Access
		victim := killable(replica, bus, binary)
		talk := victim.Converse(ctx, sessions, access)
		stream := talk.At(replica).Listen(ctx)
		Expect(talk.At(replica).Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(editorTools))
		Expect(stream.Events).NotTo(BeClosed())
		victim.run.Kill().Wait(patience)
		Eventually(stream.Events).WithContext(ctx).WithTimeout(patience).Should(BeClosed())
		Expect(talk.At(replica).Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
		Expect(replica.Converse(ctx, sessions, access).Ask(ctx, "tools/list", params{}).Tools()).
			To(ConsistOf(editorTools))
	})
})

// killable starts another replica in a separate process.
func killable(replica *World, bus *broker.Broker, binary Binary) *Crashing {
	GinkgoHelper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	Expect(free.Close()).To(Succeed())
	victim := &Crashing{World: &World{Issuer: "http://" + free.Addr().String()}}
	victim.run = binary.Run([]string{"PASTEPORT_BUS=" + bus.ClientURL()}, "serve", "--dev", "--issuer", replica.Issuer,
		"--addr", free.Addr().String(), "--admin-addr", "off", "--data", replica.Dir)
	Eventually(victim.run.Out).WithTimeout(patience).WithPolling(time.Millisecond).Should(gbytes.Say("serving"))
	return victim
}

var _ = Describe("Connecting to a bus", Label("replicas", "R5"), func() {
	It("fails at the start when it is unreachable, without printing the password", func(ctx context.Context) {
		config := service.Config{DataDir: GinkgoT().TempDir(), Development: true,
			Bus: "nats://ann:hush-hush@127.0.0.1:1"}
		config.Issuer = "http://127.0.0.1:1234"
		_, err := service.Open(ctx, config)
		Expect(err).To(MatchError(And(ContainSubstring("connecting to the bus at nats://127.0.0.1:1"),
			Not(ContainSubstring("hush")))))
		config.Bus = "redis://ann:hush-hush@127.0.0.1"
		_, err = service.Open(ctx, config)
		Expect(err).To(MatchError(And(ContainSubstring("is not the URL of a NATS server"),
			Not(ContainSubstring("hush")))))
	})

	It("reports an outage, but stays ready", Label("operations"), func(ctx SpecContext) {
		bus := broker.New()
		service := Operate(overBus(bus, ""))
		Expect(service.AskAdmin(ctx, "/readyz").Text).
			To(And(ContainSubstring(`"status":"ok"`), ContainSubstring(`{"name":"bus"}`)))
		bus.Stop()
		Eventually(func() string { return service.AskAdmin(ctx, "/readyz").Text }).WithTimeout(patience).
			Should(And(ContainSubstring(`"status":"degraded"`),
				ContainSubstring(`{"name":"bus","problem":"the bus is reconnecting"}`)))
		Expect(service.AskAdmin(ctx, "/readyz").StatusCode).To(Equal(http.StatusOK))
		Expect(service.Site().Close()).To(Succeed())
		Eventually(func() int { return service.AskAdmin(ctx, "/readyz").StatusCode }).WithTimeout(patience).
			Should(Equal(http.StatusServiceUnavailable), "an outcome stands for a second")
		bus.Start()
	})
})
