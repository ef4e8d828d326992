package bootstrap_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

// counting is a store that counts reads and writes.
type counting struct {
	*persistence.Store
	reads, writes, uses atomic.Int32
}

func (c *counting) RecordUse(ctx context.Context, uses map[string]oauth.Use) error {
	c.uses.Add(1)
	return c.Store.RecordUse(ctx, uses)
}

func (c *counting) Find(ctx context.Context, of oauth.Selection) (oauth.Authorizations, error) {
	c.reads.Add(1)
	return c.Store.Find(ctx, of)
}

func (c *counting) Change(ctx context.Context, of oauth.Selection, change func(*oauth.Authorizations) error) error {
	c.writes.Add(1)
	return c.Store.Change(ctx, of, change)
}

// down is a store that can fail.
type down struct {
	*persistence.Store
	failing atomic.Bool
	panics  *atomic.Bool
}

func (d *down) fail() error {
	if d.panics != nil && d.panics.Load() {
		panic("disk 7 of rack 3 is on fire")
	}
	if d.failing.Load() {
		return fmt.Errorf("%w: disk 7 of rack 3 is full", oauth.ErrUnavailable)
	}
	return nil
}

func (d *down) Find(ctx context.Context, of oauth.Selection) (oauth.Authorizations, error) {
	if err := d.fail(); err != nil {
		return oauth.Authorizations{}, err
	}
	return d.Store.Find(ctx, of)
}

func (d *down) Change(ctx context.Context, of oauth.Selection, change func(*oauth.Authorizations) error) error {
	if err := d.fail(); err != nil {
		return err
	}
	return d.Store.Change(ctx, of, change)
}

var _ = Describe("A host's own settings", func() {
	const issuer = "https://cms.example"
	redirect := func(uri string) func(url.Values) { return func(v url.Values) { v.Set("redirect_uri", uri) } }

	It("answer a panic of the host's code with the error format of each endpoint",
		Label("A33", "D30", "E10", "G11"), func() {
			var broken atomic.Bool
			store := &down{Store: openStore(), panics: &broken}
			h := openHost(oauth.Config{Issuer: issuer}, store, nil)
			code, form := h.code(), h.ticket()
			tokens := tokensOf(h.exchange(h.code()))
			broken.Store(true)
			for _, w := range []*httptest.ResponseRecorder{h.exchange(code), h.refresh(tokens.Refresh),
				h.post("/oauth/revoke", url.Values{"token": {tokens.Refresh}})} {
				Expect(w.Code).To(Equal(http.StatusInternalServerError))
				Expect(w.Header().Get("Content-Type")).To(Equal("application/json"))
				Expect(w.Body.String()).
					To(And(ContainSubstring(`"error":"server_error"`), Not(ContainSubstring("rack"))))
			}
			called := h.call(tokens.Access)
			Expect(called.Code).To(Equal(http.StatusServiceUnavailable))
			Expect(called.Header()).To(And(HaveKey("Retry-After"), Not(HaveKey("Www-Authenticate"))))
			page := h.approve(form)
			Expect(page.Code).To(Equal(http.StatusServiceUnavailable))
			Expect(page.Body.String()).To(And(ContainSubstring("<h1"), Not(ContainSubstring("rack"))))
			broken.Store(false)
			Expect(h.exchange(code).Code).To(Equal(http.StatusOK))
			Expect(h.refresh(tokens.Refresh).Code).To(Equal(http.StatusOK))
		})

	DescribeTable("send HSTS for an https issuer:", Label("A41"), func(issuer, header string) {
		h := openHost(oauth.Config{Issuer: issuer, AllowLoopbackIssuer: true}, openStore(), nil)
		for _, w := range []*httptest.ResponseRecorder{h.ask(), h.ask(redirect("https://unlisted.example/"))} {
			Expect(w.Header().Get("Strict-Transport-Security")).To(Equal(header))
		}
	}, Entry("behind TLS", issuer, "max-age=31536000"), Entry("on loopback", "http://127.0.0.1:8080", ""),
		Entry("on loopback with TLS", "https://localhost:8443", ""))
})

var _ = Describe("A host's own store", func() {
	const issuer = "https://cms.example"

	It("is read once for the calls of a second, gets the last use once a minute", Label("G15"), func(ctx SpecContext) {
		at, store := &clock{}, &counting{Store: openStore()}
		h := openHost(oauth.Config{Issuer: issuer, Now: at.now}, store, nil)
		access := tokensOf(h.exchange(h.code())).Access
		reads, writes := store.reads.Load(), store.writes.Load()
		for range 5 {
			Expect(h.call(access).Code).To(Equal(http.StatusOK))
		}
		Expect(store.reads.Load() - reads).To(BeNumerically("<", 5))
		Eventually(store.uses.Load).WithContext(ctx).Should(BeEquivalentTo(1))
		at.advance(time.Minute)
		h.call(access)
		h.call(access)
		h.authz.Close()
		Expect(store.uses.Load()).To(BeEquivalentTo(2))
		Expect(store.writes.Load()).To(Equal(writes))
	})

	It("gives the same answers after rows were deleted", Label("I21", "D32"), func(ctx SpecContext) {
		at, store := &clock{}, openStore()
		h := openHost(oauth.Config{Issuer: issuer, Now: at.now}, store, nil)
		late, tokens := h.code(), tokensOf(h.exchange(h.code()))
		at.advance(181 * 24 * time.Hour)
		answers := func() []string {
			return []string{h.exchange(late).Body.String(), h.refresh(tokens.Refresh).Body.String(),
				h.call(tokens.Access).Body.String()}
		}
		before := answers()
		Expect(store.DeleteExpired(ctx, at.now())).To(BeNumerically(">", 0))
		Expect(answers()).To(Equal(before))
	})

	It("ends a grant without offline_access with its access token", Label("I13"), func(ctx SpecContext) {
		at, store := &clock{}, openStore()
		h := openHost(oauth.Config{Issuer: issuer, Now: at.now}, store, nil)
		access := tokensOf(h.exchange(h.code(func(v url.Values) { v.Set("scope", "mcp") }))).Access
		at.advance(time.Hour)
		Expect(h.call(access).Code).To(Equal(http.StatusUnauthorized))
		at.advance(24 * time.Hour)
		Expect(store.DeleteExpired(ctx, at.now())).To(BeNumerically(">", 0))
		Expect(h.authz.EndGrantsOf(ctx, "host-token")).To(BeZero())
	})
})

// swept is a store that counts deletions of expired rows.
type swept struct {
	*persistence.Store
	times atomic.Int32
	until atomic.Pointer[time.Time]

	oldest atomic.Pointer[time.Time] // of the trace that is kept
	most   atomic.Int32
}

func (s *swept) DeleteExpired(ctx context.Context, now time.Time) (int, error) {
	s.times.Add(1)
	s.until.Store(&now)
	return s.Store.DeleteExpired(ctx, now)
}

func (s *swept) ForgetAttempts(ctx context.Context, before time.Time, keep int) (int, error) {
	s.oldest.Store(&before)
	s.most.Store(int32(keep))
	return s.Store.ForgetAttempts(ctx, before, keep)
}

var _ = Describe("Settings of a host", func() {
	const issuer = "https://cms.example"

	It("delete expired rows at each interval, by the host's clock, until the server is closed", Label("H6"), func() {
		store, hours := &swept{Store: openStore()}, &clock{}
		hours.advance(24 * time.Hour)
		config := oauth.Config{
			Issuer:       issuer,
			VerifyBearer: func(string) bool { return true },
			Now:          hours.now,
			Logger:       slog.New(slog.DiscardHandler),
		}
		authz, err := bootstrap.NewOAuthServer(config, store, bootstrap.WithSweepEvery(time.Millisecond))
		Expect(err).NotTo(HaveOccurred())
		Eventually(store.times.Load).Should(BeNumerically(">", 2))
		Expect(*store.until.Load()).To(BeTemporally("~", hours.now(), time.Minute))
		Eventually(store.most.Load).Should(BeEquivalentTo(5_000))
		Expect(*store.oldest.Load()).To(BeTemporally("~", hours.now().Add(-7*24*time.Hour), time.Minute))
		authz.Close()
		before := store.times.Load()
		Consistently(store.times.Load, "50ms").Should(BeNumerically("<=", before+1), "one may have been running")
	})
})
