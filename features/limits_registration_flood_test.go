package features_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/oauth"
)

// handle answers a request in this process.
func (w *World) handle(method, target, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, bytes.NewBufferString(body))
	r.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	w.service.Echo.ServeHTTP(answer, r)
	return answer
}

// registered is the beginning of the digest of a client_id.
type registered [16]byte

// registerAndOpen registers a client, and returns the zero value unless its id opens.
func (w *World) registerAndOpen() (digest registered) {
	w.Clock.Advance(time.Minute / oauth.RegistrationsPerMinute)
	answer := w.handle(http.MethodPost, w.Issuer+"/oauth/register",
		`{"client_name":"An app","redirect_uris":["http://127.0.0.1/callback"]}`)
	var members struct {
		ID string `json:"client_id"`
	}
	if answer.Code != http.StatusCreated || json.Unmarshal(answer.Body.Bytes(), &members) != nil {
		return registered{}
	}
	if document := w.handle(http.MethodGet, members.ID, ""); document.Code != http.StatusOK ||
		!bytes.Contains(document.Body.Bytes(), []byte(members.ID)) {
		return registered{}
	}
	sum := sha256.Sum256([]byte(members.ID))
	return registered(sum[:])
}

// registerAll fills in the digests of as many clients, in several goroutines.
func (w *World) registerAll(into []registered) {
	var workers errgroup.Group
	for part := range slices.Chunk(into, max(1, len(into)/8)) {
		workers.Go(func() error {
			for i := range part {
				part[i] = w.registerAndOpen()
			}
			return nil
		})
	}
	_ = workers.Wait() // no worker fails
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // the second one empties the pools
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

var _ = Describe("Flooding the server with registrations", Label("L10"), func() {
	body := map[string]any{"redirect_uris": []string{"https://app.example/callback"}}

	DescribeTable("writes no row and does not increase the server's memory use", Label("L1"), func(ctx SpecContext,
		early, all int) {
		world := Operate(selfRegistration, func(config *service.Config) {
			config.Logger = slog.New(slog.DiscardHandler)
			config.Limits.UnlimitedNetworks = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} // of httptest
		})
		world.RegisterClient(ctx, "http://127.0.0.1:4321/callback").Connect(ctx)
		world.Newest(ctx, "authorize client_metadata page token_judged code_issued exchange")
		ids := make([]registered, all-1)
		rows, _ := world.CheckStore(ctx)

		world.registerAll(ids[:early])
		before := heap()
		world.registerAll(ids[early:])
		Expect(heap() - before).To(BeNumerically("<", 4<<20))

		Expect(ids).NotTo(ContainElement(registered{}), "each id opens")
		slices.SortFunc(ids, func(a, b registered) int { return bytes.Compare(a[:], b[:]) })
		Expect(slices.Compact(slices.Clone(ids))).To(HaveLen(len(ids)), "no two ids are equal")
		after, _ := world.CheckStore(ctx)
		Expect(after).To(Equal(rows))
	}, Entry("of 2,000 clients", Label("long"), 500, 2_000, SpecTimeout(8*time.Minute)),
		Entry("of 1,000,000 clients", 50_000, 1_000_000, Label("soak", "flood"), SpecTimeout(35*time.Minute)))

	It("is limited for each address, and for the networks around it", func(ctx SpecContext) {
		world := Operate(selfRegistration, behind("127.0.0.1/32"))
		world.Clock.Stop()
		register := func(ctx context.Context, address string) int {
			return world.Register(ctx, body, forwarded(address)).StatusCode
		}
		for range oauth.AddressRegistrationsPerMinute {
			Expect(register(ctx, "203.0.113.7")).To(Equal(http.StatusCreated))
		}
		refused := world.Register(ctx, body, forwarded("203.0.113.7"))
		Expect(refused.StatusCode).To(Equal(http.StatusTooManyRequests))
		Expect(refused.Header.Get("Retry-After")).To(Equal("2"))
		Expect(decodeAny(refused)["error"]).To(Equal("temporarily_unavailable"))
		for _, address := range []string{"203.0.113.8", "203.0.113.9", "203.0.113.10", "203.0.113.11"} {
			for range oauth.AddressRegistrationsPerMinute {
				Expect(register(ctx, address)).To(Equal(http.StatusCreated))
			}
		}
		Expect(register(ctx, "203.0.113.12")).To(Equal(http.StatusTooManyRequests), "the /24 has registered 150")
		Expect(register(ctx, "198.51.100.1")).To(Equal(http.StatusCreated))
		Expect(world.AskAdmin(ctx, "/metrics").Text).
			To(ContainSubstring(`pasteport_limits_total{effect="refused",limit="registrations"} 2`))
		world.Clock.Advance(time.Minute)
		Expect(register(ctx, "203.0.113.7")).To(Equal(http.StatusCreated))
		Expect(Run(ctx, append([]string{"connections", "--json"}, world.Kept()...)...).Out).To(MatchJSON("[]"))
	})
})
