package bootstrap_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Guessing from many addresses", Label("B6", "N5"), func() {
	var site *host
	BeforeEach(func() {
		noon := time.Now()
		site = openHost(oauth.Config{
			Issuer:       "https://cms.example",
			VerifyBearer: func(string) bool { return false },
			Now:          func() time.Time { return noon },
		}, openStore(), nil)
	})
	// guess pastes a wrong token into a new form, from a peer that names another in
	// X-Forwarded-For.
	guess := func(peer, forwardedFor string) int {
		GinkgoHelper()
		form := url.Values{"ticket": {site.ticket()}, "decision": {"approve"}, "bearer_token": {"wrong" + rand.Text()}}
		r := httptest.NewRequest(http.MethodPost, site.issuer+"/oauth/authorize", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("X-Forwarded-For", forwardedFor)
		r.Header.Set("X-Real-IP", forwardedFor)
		r.RemoteAddr = peer
		w := httptest.NewRecorder()
		site.ServeHTTP(w, r)
		return w.Code
	}

	It("has the same limit with other addresses in a header", func() {
		for i := range 11 {
			Expect(guess("203.0.113.7:5555", fmt.Sprintf("198.51.100.%d", i))).To(Equal(http.StatusForbidden))
		}
		Expect(site.slowed).To(BeZero())
		Expect(guess("203.0.113.8:6666", "198.51.100.9")).To(Equal(http.StatusForbidden))
		Expect(site.slowed).To(Equal(1))
		Expect(guess("198.51.100.9:6666", "203.0.113.7")).To(Equal(http.StatusForbidden))
		Expect(site.slowed).To(Equal(1))
	})

	It("has the same limit with other addresses of the same network", func() {
		for i := range 11 {
			Expect(guess(fmt.Sprintf("[2001:db8:1:2::%x]:5555", i), "")).To(Equal(http.StatusForbidden))
		}
		Expect(guess("[2001:db8:1:3:ffff::1]:5555", "")).To(Equal(http.StatusForbidden))
		Expect(site.slowed).To(Equal(1))
		Expect(guess("[2001:db8:2:2::1]:5555", "")).To(Equal(http.StatusForbidden))
		Expect(site.slowed).To(Equal(1))
	})
})

var _ = Describe("Failing at the token endpoint", Label("D31"), func() {
	It("does not count while the verifier is unavailable", Label("D25", "D30"), func() {
		site := newFakeVerifier()
		server := openHost(oauth.Config{Issuer: "https://cms.example", Verifier: site}, openStore(), nil)
		tokens := tokensOf(server.exchange(server.code()))
		site.set(unavailable)
		form := url.Values{"grant_type": {"refresh_token"}, "client_id": {clientID}, "refresh_token": {tokens.Refresh}}
		for range 61 {
			r := httptest.NewRequest(http.MethodPost, server.issuer+"/oauth/token", strings.NewReader(form.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.RemoteAddr = "203.0.113.7:5555"
			w := httptest.NewRecorder()
			server.ServeHTTP(w, r)
			Expect(w).To(beUnavailable())
		}
	})
})
