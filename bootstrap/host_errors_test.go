package bootstrap_test

import (
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/labstack/echo/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("A host that looks for its own mistake in the log", Label("J17"), func() {
	var log *gbytes.Buffer
	open := func(config oauth.Config, store oauth.Store) *host {
		GinkgoHelper()
		log = gbytes.NewBuffer()
		config.Issuer, config.Logger = "https://cms.example", slog.New(slog.NewTextHandler(log, nil))
		authz, err := bootstrap.NewOAuthServer(config, store, bootstrap.WithClientDirectory(published{}))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(authz.Close)
		h := &host{Echo: echo.New(), issuer: config.Issuer, authz: authz}
		Expect(bootstrap.Guard(func(http.ResponseWriter, *http.Request, oauth.Caller) {}, bootstrap.WithOAuth(authz)).
			Register(h.Echo)).To(Succeed())
		return h
	}

	It("finds the text of its verifier's error, without the token, and the trace has the type only",
		Label("B15"), func(ctx SpecContext) {
			site := newFakeVerifier()
			site.set(func(token string) (oauth.Principal, error) {
				return oauth.Principal{}, errors.New("no row for " + token + " in table users")
			})
			h := open(oauth.Config{Verifier: site}, openStore())
			Expect(h.approve(h.ticket())).To(beConsentPage())
			Expect(log.Contents()).To(ContainSubstring(`error="no row for [redacted] in table users"`))
			Expect(log.Contents()).NotTo(ContainSubstring("host-token"))
			h.authz.Close()
			attempts, err := h.authz.Trace(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(attempts).To(HaveLen(1))
			Expect(attempts[0].Steps).
				To(ContainElement(HaveField("Reason",
					And(ContainSubstring("failed with *errors.errorString"), Not(ContainSubstring("table"))))))
		})

	It("finds the type and the place of a panic in its own function, and not the value", func() {
		h := open(oauth.Config{VerifyBearer: func(string) bool {
			return true
		}, AllowClient: func(string) bool { panic(errors.New("ada@example.com")) }}, openStore())
		Expect(h.ask().Code).To(Equal(http.StatusServiceUnavailable))
		Expect(log.Contents()).
			To(And(ContainSubstring("type *errors.errorString"), ContainSubstring("host_errors_test.go:"),
				Not(ContainSubstring("ada@"))))
	})

	It("finds the place of a panic in its store", Label("G11"), func() {
		var broken atomic.Bool
		h := open(oauth.Config{VerifyBearer: func(string) bool {
			return true
		}}, &down{Store: openStore(), panics: &broken})
		tokens := tokensOf(h.exchange(h.code()))
		broken.Store(true)
		Expect(h.call(tokens.Access).Code).To(Equal(http.StatusServiceUnavailable))
		Expect(log.Contents()).
			To(And(ContainSubstring("type string"), ContainSubstring("settings_test.go:"),
				Not(ContainSubstring("rack"))))
	})
})
