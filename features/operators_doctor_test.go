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

// With returns the names of the checks with this result.
func (d Diagnosis) With(status string) (names []string) {
	for _, f := range d.Checks {
		if f.Status == status {
			names = append(names, f.Name)
		}
	}
	return names
}

// Of returns the finding of one check.
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

// Trust returns a file with the certificate of a server for --ca.
func Trust(server *httptest.Server) string {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "ca.pem")
	block := pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	Expect(os.WriteFile(file, pem.EncodeToMemory(&block), 0o600)).To(Succeed())
	return file
}

var _ = Describe("Checking a working deployment", Label("doctor"), func() {
	var world *World
	BeforeEach(func() { world = NewWorld() })

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
