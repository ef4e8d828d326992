package features_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Finding is one check of doctor's report.
type Finding struct {
	Name, Question, Status, Seen, Fix string
}

// Diagnosis is the result of one run of doctor.
type Diagnosis struct {
	Ran
	URL    string
	Checks []Finding
}

// Doctor runs the command with standard input.
func Doctor(ctx context.Context, input string, args ...string) Diagnosis {
	return Diagnosis{Ran: RunTyping(ctx, input, append([]string{"doctor"}, args...)...)}
}

// Diagnose runs doctor and parses its report.
func Diagnose(ctx context.Context, args ...string) Diagnosis {
	GinkgoHelper()
	d := Doctor(ctx, "", append(args, "--json")...)
	Expect(json.Unmarshal([]byte(d.Out), &d)).To(Succeed(), d.Out+d.Err)
	return d
}

func (d Diagnosis) With(status string) (names []string) {
	for _, f := range d.Checks {
		if f.Status == status {
			names = append(names, f.Name)
		}
	}
	return names
}

func (d Diagnosis) Of(name string) Finding {
	GinkgoHelper()
	for _, f := range d.Checks {
		if f.Name == name {
			return f
		}
	}
	Fail("there is no check " + name)
	return Finding{}
}

func Trust(server *httptest.Server) string {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "ca.pem")
	block := pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	Expect(os.WriteFile(file, pem.EncodeToMemory(&block), 0o600)).To(Succeed())
	return file
}

var _ = Describe("Checking a working deployment", Label("doctor"), func() {
	world := EachWorld()

	whole := func() []string { return []string{world.MCP(), "--token", world.Token, "--origin", world.Issuer} }

	It("passes every check, including a whole login", func(ctx SpecContext) {
		d := Diagnose(ctx, whole()...)
		Expect(d.With("ok")).To(HaveLen(len(d.Checks)-1), d.Out)
		Expect(d.With("skipped")).To(Equal([]string{"upstream"}), "it is not a gateway")
		Expect(d.Code).To(BeZero())
		Expect(d.Checks).To(HaveLen(11))
		Expect(world.EndGrantsOf(ctx, world.Token)).To(BeZero(), "it leaves no grant behind")
	})

	It("passes every check over TLS", func(ctx SpecContext) {
		front := NewFront(overTLS)
		d := Diagnose(ctx, front.URL()+"/mcp", "--ca", Trust(front.server))
		Expect(d.With("failed")).To(BeEmpty(), d.Out)
		Expect(d.Of("connect").Seen).To(ContainSubstring("the certificate is valid until"))
	})

	It("lists the checks that it skipped without a token of the site", func(ctx SpecContext) {
		d := Diagnose(ctx, world.MCP())
		Expect(d.Code).To(BeZero())
		Expect(d.With("skipped")).To(Equal([]string{"login", "stream", "refresh", "revoke", "upstream"}))
		Expect(d.Of("login").Seen).To(ContainSubstring("needs --token"))
	})

	It("explains why web pages of other origins are refused", func(ctx SpecContext) {
		Expect(Diagnose(ctx, world.MCP()).Of("cors").Seen).To(ContainSubstring("403"))
		stranger := Diagnose(ctx, world.MCP(), "--origin", "http://localhost:6274")
		Expect(stranger.With("failed")).To(Equal([]string{"cors"}))
		Expect(stranger.Of("cors").Fix).To(ContainSubstring("http://localhost:6274"))
	})

	It("prints a readable report, without colours unless it writes to a terminal", func(ctx SpecContext) {
		d := Doctor(ctx, "", world.MCP())
		Expect(d.Out).To(MatchRegexp(`(?m)^ok       connect    POST http.* returned 401$`))
		Expect(d.Out).To(MatchRegexp(`(?m)^6 ok, 0 failed, 5 skipped\n`))
		Expect(d.Out + d.Err).NotTo(ContainSubstring("\x1b"))
	})

	It("reads the token from standard input, and prints no secret", func(ctx SpecContext) {
		issued := &secrets{}
		front := NewFront(issued.listen)
		for _, form := range []string{"--json", "--json=false"} {
			d := Doctor(ctx, front.world.Token+"\n", front.URL()+"/mcp", "--token", "-", form)
			Expect(d.Code).To(BeZero(), d.Out)
			for _, secret := range append(issued.seen(), front.world.Token) {
				Expect(d.Out + d.Err).NotTo(ContainSubstring(secret))
			}
		}
		Expect(len(issued.seen())).
			To(BeNumerically(">=", 2*5), "code, verifier, access and refresh tokens of both runs")
	})

	It("does not print a token of the site, even if the server repeats it", func(ctx SpecContext) {
		front := NewFront(answering(http.MethodPost, "/oauth/authorize", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, "<title>"+editorToken+" \x1b[31m</title>")
		}))
		d := Doctor(ctx, "", front.URL()+"/mcp", "--token", editorToken)
		Expect(d.Out).To(ContainSubstring("[secret]"))
		Expect(d.Out).NotTo(Or(ContainSubstring(editorToken), ContainSubstring("\x1b")))
	})
})

var _ = Describe("Command line of doctor", Label("doctor"), func() {
	const url = "https://cms.example/mcp"

	DescribeTable("fails with a usage error", func(ctx SpecContext, says string, args ...string) {
		d := Doctor(ctx, "", args...)
		Expect(d.Code).To(Equal(2))
		Expect(d.Err).To(ContainSubstring(says))
		Expect(d.Out).To(BeEmpty())
	},
		Entry("without a URL", "name the URL"),
		Entry("with a malformed URL", "invalid URL", "cms.example/mcp"),
		Entry("with a password in the URL", "without a password", "https://ada:sesame@cms.example/mcp"),
		Entry("with an origin that has a path", "not an origin", url, "--origin", "http://localhost:6274/"),
		Entry("with an authorization server that has a path", "--authorization-server", url, "--authorization-server",
			"https://login.example/"),
		Entry("with a timeout of zero", "--timeout", url, "--timeout", "0s"),
		Entry("with an empty token", "reading the token: the token is missing", "http://127.0.0.1:1/mcp", "--token",
			"-"),
	)

	DescribeTable("fails for a wrong file", func(ctx SpecContext, flag, content string, more ...string) {
		file := filepath.Join(GinkgoT().TempDir(), "file.pem")
		if content != "" {
			Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
		}
		d := Doctor(ctx, "", append([]string{"http://127.0.0.1:1/mcp", flag, file}, more...)...)
		Expect(d.Code).To(Equal(1))
		Expect(d.Err).To(And(ContainSubstring(file), ContainSubstring(flag)))
	},
		Entry("because the CA file holds no certificates", "--ca", "hello"),
	)

	It("reports only the failed connection for a server that does not run", func(ctx SpecContext) {
		d := Diagnose(ctx, "http://127.0.0.1:1/mcp")
		Expect(d.With("failed")).To(Equal([]string{"connect"}))
		Expect(d.With("ok")).To(BeEmpty())
		Expect(d.Of("server").Seen).To(Equal("because connect failed"))
		Expect(d.Err).To(MatchRegexp(`1 of \d+ checks failed`))
	})

	It("revokes its tokens when it is interrupted", func(ctx SpecContext) {
		ctx2, interrupt := context.WithCancel(ctx)
		front := NewFront(answering(http.MethodGet, "/mcp", func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			interrupt()
			<-r.Context().Done()
			panic(http.ErrAbortHandler) // an empty response could arrive before the interruption
		}))
		d := Doctor(ctx2, "", append([]string{front.URL() + "/mcp"}, login(front)...)...)
		Expect(d.Code).To(Equal(1))
		Expect(d.Err).To(ContainSubstring("context canceled"))
		Expect(front.world.EndGrantsOf(ctx, front.world.Token)).To(BeZero(), "no grant is active")
	})

	It("does not send the token to another server than the issuer of the page", func(ctx SpecContext) {
		elsewhere := NewClientSite()
		front := NewFront(rewriting("/oauth/authorize", func(string) string {
			return `<form method=post action="` + elsewhere.URL("/steal") +
				`"><input name=ticket><input name=bearer_token></form>`
		}))
		d := Diagnose(ctx, append([]string{front.URL() + "/mcp"}, login(front)...)...)
		Expect(d.With("failed")).To(Equal([]string{"login"}))
		Expect(elsewhere.Fetches()).To(BeZero())
	})

	Describe("with an authorization server on another host", func() {
		var elsewhere, front *Front
		var received []string
		BeforeEach(func() {
			received = nil
			elsewhere = NewFront(
				answering(http.MethodGet, "/oauth/authorize", func(w http.ResponseWriter, _ *http.Request) {
					_, _ = io.WriteString(w, `<form method=post><input name=ticket><input name=bearer_token></form>`)
				}),
				answering(http.MethodPost, "/oauth/authorize", func(_ http.ResponseWriter, r *http.Request) {
					received = append(received, r.PostFormValue("bearer_token"))
				}))
			front = NewFront(member(resourcePath, "authorization_servers", []string{elsewhere.URL()}))
		})
		diagnose := func(ctx context.Context, more ...string) Diagnosis {
			return Diagnose(ctx, append(append([]string{front.URL() + "/mcp"}, login(front)...), more...)...)
		}

		It("does not send the token there, and says how to", func(ctx SpecContext) {
			for _, more := range [][]string{nil, {"--authorization-server", front.URL()}} {
				d := diagnose(ctx, more...)
				Expect(d.With("failed")).To(Equal([]string{"login"}), d.Out)
				Expect(d.Of("login").Seen).To(ContainSubstring(elsewhere.URL()))
				Expect(d.Of("login").Fix).To(ContainSubstring("--authorization-server " + elsewhere.URL()))
			}
			Expect(received).To(BeEmpty())
		})

		It("sends it to the one that a flag names, and says so before", func(ctx SpecContext) {
			d := diagnose(ctx, "--authorization-server", elsewhere.URL())
			Expect(d.Of("login").Seen).To(ContainSubstring("the page shows 200"))
			Expect(d.Err).To(HavePrefix("the token may go to " + elsewhere.URL() + "\n"))
			Expect(received).To(Equal([]string{front.world.Token}))
		})
	})
})
