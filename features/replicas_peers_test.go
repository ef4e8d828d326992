package features_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/service"
)

var _ = Describe("The header of a request between replicas", Label("replicas", "R3"), func() {
	const header = "Pasteport-Peer"
	var passed *Wiretap
	var replicas []*World
	var access string
	var talk *Conversation // its session is in the first replica
	BeforeEach(func(ctx SpecContext) {
		passed = new(Wiretap)
		replicas = NewReplicas(2, passed.Tap)
		access = replicas[0].NewClient().Connect(ctx).Access
		talk = replicas[0].Converse(ctx, sessions, access)
	})
	// written sends a call to the second replica, and returns what that one has sent to the first.
	written := func(ctx context.Context) Overheard {
		GinkgoHelper()
		Expect(talk.At(replicas[1]).Use(ctx, "create_article", params{"title": "Once"}).Slug()).To(Equal("once"))
		return passed.Last()
	}

	DescribeTable("counts for nothing with", func(ctx SpecContext, change func(*Overheard)) {
		request := written(ctx)
		Expect(request.Header).To(HaveKey(header))
		other := replicas[0].Converse(ctx, sessions, access).session
		Expect(request.Repeat(ctx, replicas[0], func(o *Overheard) {
			change(o)
			if o.Header.Get("Mcp-Session-Id") == "another" {
				o.Header.Set("Mcp-Session-Id", other)
			}
		})).To(BeChallenged(replicas[0], ""))
		Expect(talk.Use(ctx, "list_articles", params{}).Text()).NotTo(ContainSubstring("twice"))
	},
		Entry("another body", func(o *Overheard) { o.body = strings.Replace(o.body, "Once", "twice", 1) }),
		Entry("no body", func(o *Overheard) { o.body = "" }),
		Entry("another session", func(o *Overheard) { o.Header.Set("Mcp-Session-Id", "another") }),
		Entry("no session", func(o *Overheard) { o.Header.Del("Mcp-Session-Id") }),
		Entry("another method", func(o *Overheard) { o.Method = http.MethodDelete }),
		Entry("another path", func(o *Overheard) { o.URL.Path += "/message" }),
		Entry("a query", func(o *Overheard) { o.URL.RawQuery = "sessionid=x" }),
		Entry("a changed seal", func(o *Overheard) {
			o.Header.Set(header, "AAAA"+strings.TrimPrefix(o.Header.Get(header), "AAAA")[4:])
		}),
		Entry("a part of the seal", func(o *Overheard) { o.Header.Set(header, o.Header.Get(header)[:8]) }),
		Entry("a text that is not one", func(o *Overheard) { o.Header.Set(header, "let me in") }),
	)

	It("counts for nothing after 30 seconds", func(ctx SpecContext) {
		request := written(ctx)
		Expect(request.Repeat(ctx, replicas[0]).StatusCode).To(Equal(http.StatusOK))
		replicas[0].Clock.Advance(31 * time.Second)
		Expect(request.Repeat(ctx, replicas[0])).To(BeChallenged(replicas[0], ""))
	})

	It("counts for nothing at another replica", func(ctx SpecContext) {
		Expect(written(ctx).Repeat(ctx, replicas[1])).To(BeChallenged(replicas[0], ""))
	})

	It("counts for nothing from a service with another server secret", func(ctx SpecContext) {
		stranger := NewReplicas(1)[0]
		lost := stranger.Replica(func(config *service.Config) { config.Advertise = passed.addresses[0] })
		theirs := lost.Converse(ctx, sessions, stranger.NewClient().Connect(ctx).Access).At(stranger)
		Expect(theirs.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusServiceUnavailable))
		Expect(passed.Last().Header).To(HaveKey(header))
		Expect(passed.Last().status).To(Equal(http.StatusUnauthorized))
	})

	It("has no effect in the request of a client", func(ctx SpecContext) {
		request := written(ctx)
		with := func(r *http.Request) { r.Header.Set(header, request.Header.Get(header)) }
		at := talk.At(replicas[1])
		Expect(at.Post(ctx, "tools/list", params{}, with).StatusCode).To(Equal(http.StatusOK))
		Expect(passed.Last().Header.Get(header)).NotTo(Equal(request.Header.Get(header)))
		Expect(talk.Post(ctx, "tools/list", params{}, with).StatusCode).To(Equal(http.StatusOK))
		talk.Access = ""
		Expect(talk.Post(ctx, "tools/list", params{}, with)).To(BeChallenged(replicas[0], ""))
	})

	It("is not passed on again", func(ctx SpecContext) {
		misled := passed.before(replicas[1].Issuer) // a replica that gives the address of another
		third := replicas[0].Replica(func(config *service.Config) { config.Advertise = misled })
		lost := third.Converse(ctx, sessions, access).At(replicas[0])
		before := len(passed.Heard())
		Expect(lost.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusServiceUnavailable))
		Expect(passed.Heard()).To(HaveLen(before + 1))
	})
})

var _ = Describe("A replica that does not answer", Label("replicas", "R4"), func() {
	DescribeTable("makes requests in its sessions get 503, and 404 after ten seconds, if it",
		func(ctx SpecContext, advertised func() string) {
			replica := NewReplicas(1)[0]
			client := replica.NewClient()
			access := client.Connect(ctx).Access
			lost := replica.Replica(func(config *service.Config) { config.Advertise = advertised() })
			talk := lost.Converse(ctx, sessions, access).At(replica)
			answer := talk.Post(ctx, "tools/list", params{})
			Expect(answer.StatusCode).To(Equal(http.StatusServiceUnavailable), answer.Text)
			Expect(answer.Header.Get("Retry-After")).To(Equal("5"))
			Expect(answer.Header).NotTo(HaveKey("Www-Authenticate"))
			Expect(answer.Text).NotTo(ContainSubstring("stranger"))
			Expect(replica.Converse(ctx, sessions, access).Ask(ctx, "tools/list", params{}).Tools()).
				To(ConsistOf(editorTools))
			replica.Clock.Advance(10 * time.Second)
			Expect(talk.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
		},
		Entry("cannot be reached", func() string { return "http://replica.invalid:8080" }),
		Entry("was replaced by another server", func() string {
			stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "the answer of a stranger")
			}))
			DeferCleanup(stranger.Close)
			return stranger.URL
		}),
	)

	It("that is killed ends its streams at other replicas, and its sessions get 404, others go on",
		func(ctx SpecContext) {
			binary, replica := BuildBinary(), NewReplicas(1)[0]
			access := replica.NewClient().Connect(ctx).Access
			victim := killable(replica, binary)
			talk := victim.Converse(ctx, sessions, access)
			stream := talk.At(replica).Listen(ctx)
			own := replica.Converse(ctx, sessions, access)
			kept := own.Listen(ctx)
			Expect(talk.At(replica).Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(editorTools))
			Expect(stream.Events).NotTo(BeClosed())
			victim.run.Kill().Wait(patience)
			Eventually(stream.Events).WithContext(ctx).WithTimeout(patience).Should(BeClosed())
			Expect(talk.At(replica).Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
			Expect(own.Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(editorTools))
			Expect(kept.Events).NotTo(BeClosed())
			Expect(replica.Converse(ctx, sessions, access).Ask(ctx, "tools/list", params{}).Tools()).
				To(ConsistOf(editorTools))
		})
})

// killable starts another replica in a separate process.
func killable(replica *World, binary Binary) *Crashing {
	GinkgoHelper()
	victim := &Crashing{World: &World{Issuer: "http://" + freeAddress()}}
	victim.run = binary.Run(nil, "serve", "--dev", "--issuer", replica.Issuer, "--advertise", victim.Issuer,
		"--addr", strings.TrimPrefix(victim.Issuer, "http://"), "--admin-addr", "off", "--data", replica.Dir)
	Eventually(victim.run.Out).WithTimeout(patience).WithPolling(time.Millisecond).Should(gbytes.Say("serving"))
	return victim
}

var _ = Describe("Replicas of a gateway to a program over stdio", Label("replicas", "gateway", "R1"), func() {
	var passed *Wiretap
	var replicas []*World
	var access string
	BeforeEach(func(ctx SpecContext) {
		passed = new(Wiretap)
		replicas = NewReplicas(3, gatewayTo(""), toProgram(stdioProgram(), peopleOfPrograms(ctx)), passed.Tap)
		replicas[0].Token = adaKey
		access = connectedTo(ctx, replicas[0])
	})

	DescribeTable("need no sticky sessions", func(ctx SpecContext, revision string) {
		talk := replicas[0].Converse(ctx, revision, access)
		pid := talk.Use(ctx, "pid", params{}).Text()
		for _, replica := range replicas {
			at := talk.At(replica)
			Expect(at.Use(ctx, "pid", params{}).Text()).To(Equal(pid))
			Expect(at.Use(ctx, "shout", params{"text": "hello"}).Text()).To(Equal("HELLO"))
		}
		progress := Follow(talk.At(replicas[1]).message(ctx, "tools/call",
			params{"name": "steps", "arguments": params{}, "_meta": params{"progressToken": "p"}}))
		Eventually(progress.Events).WithContext(ctx).WithTimeout(patience).
			Should(Receive(HaveField("Data", ContainSubstring(`"progress":3`))))
		intruder := talk.At(replicas[1])
		before := len(passed.Heard())
		intruder.Access = connectedTo(ctx, replicas[0])
		Expect(intruder.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
		Expect(passed.Heard()).To(HaveLen(before))
		for _, request := range passed.Heard() {
			Expect(fmt.Sprint(request.URL, request.Header, request.body)).NotTo(ContainSubstring(adaKey))
		}
		Expect(Send(talk.At(replicas[2]).Request(ctx, http.MethodDelete)).StatusCode).To(Equal(http.StatusNoContent))
		Expect(talk.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
	}, revisions(batching, headers, sessions))

	It("pass a cancellation to the program, and its answers to its questions", func(ctx SpecContext) {
		talk := replicas[0].Converse(ctx, sessions, access)
		waiting := Follow(numbered(8, // an id of its own, because a repeated one cancels nothing
			talk.At(replicas[1]).message(ctx, "tools/call", params{"name": "wait", "arguments": params{}})))
		Expect(talk.At(replicas[2]).Post(ctx, "notifications/cancelled", params{"requestId": 8}).StatusCode).
			To(Equal(http.StatusAccepted))
		Eventually(waiting.Events).WithContext(ctx).WithTimeout(patience).Should(BeClosed())
	})

	It("let a client start anew after the replica of its session has stopped", func(ctx SpecContext) {
		replicas := NewReplicas(3, gatewayTo(""), toProgram(stdioProgram(), peopleOfPrograms(ctx)))
		replicas[0].Token = adaKey
		access := connectedTo(ctx, replicas[0])
		talk, other := replicas[2].Converse(ctx, sessions, access), replicas[1].Converse(ctx, sessions, access)
		replicas[2].Stop()
		Expect(talk.At(replicas[0]).Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
		Expect(other.At(replicas[0]).Use(ctx, "shout", params{"text": "on"}).Text()).To(Equal("ON"))
		anew := replicas[0].Converse(ctx, sessions, access)
		Expect(anew.Use(ctx, "shout", params{"text": "on"}).Text()).To(Equal("ON"))
	})
})

var _ = Describe("Audit of a call in a session of another replica", Label("replicas", "audit", "V1", "R1"), func() {
	DescribeTable("has one line, with the id of the request of the client, of",
		func(ctx SpecContext, tool, token string, to func(context.Context) []func(*service.Config)) {
			var files []string
			replicas := NewReplicas(2, append(to(ctx), func(config *service.Config) {
				path, adjust := auditing()
				files = append(files, path)
				adjust(config)
			})...)
			replicas[0].Token = token
			talk := replicas[0].Converse(ctx, sessions, connectedTo(ctx, replicas[0])).At(replicas[1])
			called := talk.Post(ctx, "tools/call", params{"name": tool, "arguments": params{}})
			Expect(called.StatusCode).To(Equal(http.StatusOK), called.Text)
			for _, replica := range replicas {
				replica.Stop()
			}
			calls := slices.DeleteFunc(slices.Concat(auditLines(files[0]), auditLines(files[1])),
				func(line AuditLine) bool { return line.Method != "tools/call" })
			Expect(calls).To(HaveExactElements(And(HaveField("Name", tool), HaveField("Outcome", "ok"),
				HaveField("Request", called.Header.Get("X-Request-Id")))))
			Expect(called.Header.Values("X-Request-Id")).To(HaveLen(1))
		},
		Entry("a site", "list_articles", editorToken, func(context.Context) []func(*service.Config) { return nil }),
		Entry("a program over stdio", "shout", adaKey, func(ctx context.Context) []func(*service.Config) {
			return []func(*service.Config){gatewayTo(""), toProgram(stdioProgram(), peopleOfPrograms(ctx))}
		}),
	)
})

var _ = Describe("The address of a replica", Label("replicas", "R1", "F14"), func() {
	DescribeTable("is refused at the start if it is", func(ctx SpecContext, address string) {
		config := service.Config{DataDir: GinkgoT().TempDir(), Development: true, Advertise: address}
		config.Issuer = "http://127.0.0.1:1234"
		_, err := service.Open(ctx, config)
		Expect(err).To(MatchError(And(ContainSubstring(address), ContainSubstring("http://host:port"))))
		_, err = bootstrap.NewMCPServer(mcp.NewServer(&mcp.Implementation{Name: "site", Version: "1"}, nil),
			bootstrap.WithPeers(address)).Handler()
		Expect(err).To(MatchError(ContainSubstring("WithPeers is %q", address)))
	},
		Entry("not a URL", "10.0.1.7:8080"), Entry("without a port", "http://10.0.1.7"),
		Entry("without a host", "http://:8080"), Entry("one with a path", "http://10.0.1.7:8080/mcp"),
		Entry("one with a name and password", "http://ann:hush@10.0.1.7:8080"),
		Entry("of another scheme", "tcp://10.0.1.7:8080"),
	)
})
