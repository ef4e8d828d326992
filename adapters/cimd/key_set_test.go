package cimd

import (
	"context"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth/client"
)

var _ = Describe("Fetching a client's keys", Label("D33", "C20"), func() {
	var (
		publisher *site
		clock     *handClock
		directory *Directory
	)

	BeforeEach(func() {
		publisher, clock = newSite(), newClock()
		directory = openDirectory(Config{Now: clock.now, RootCAs: publisher.roots(), AllowLoopback: true}, patient())
	})

	publish := func(kid string, headers ...string) {
		publisher.respond(http.StatusOK, `{"keys":[{"kty":"EC","kid":"`+kid+`"},{"kty":"EC"}]}`, headers...)
	}
	has := func(ctx context.Context, kid string) bool {
		GinkgoHelper()
		set, err := directory.KeySet(ctx, publisher.client("/jwks.json"), client.KeyReference{ID: kid})
		Expect(err).NotTo(HaveOccurred())
		_, found := set.Key(client.KeyReference{ID: kid})
		return found
	}

	It("keeps unchanged keys after a 304", Label("C38"), func(ctx SpecContext) {
		publish("a", "ETag", `"1"`)
		Expect(has(ctx, "a")).To(BeTrue())
		publisher.respond(http.StatusNotModified, "")
		Expect(has(ctx, "b")).To(BeFalse())
		Expect(has(ctx, "a")).To(BeTrue())
	})

	It("allows a key set to be larger than a document, up to a limit", Label("C15"), func(ctx SpecContext) {
		sized := func(size int) {
			publisher.respond(http.StatusOK, `{"keys":[]`+strings.Repeat(" ", size-len(`{"keys":[]}`))+`}`)
		}
		sized(64 << 10)
		Expect(has(ctx, "a")).To(BeFalse())
		sized(64<<10 + 1)
		_, err := directory.KeySet(ctx, publisher.client("/other.json"), client.KeyReference{ID: "a"})
		Expect(err).To(MatchError(client.ErrUnreachable))
	})

	Context("when they have expired and cannot be renewed", Label("C56"), func() {
		BeforeEach(func(ctx SpecContext) {
			publish("a")
			Expect(has(ctx, "a")).To(BeTrue())
			clock.advance(time.Minute)
		})
		find := func(ctx context.Context, kid string) error {
			_, err := directory.KeySet(ctx, publisher.client("/jwks.json"), client.KeyReference{ID: kid})
			return err
		}

		It("uses them for an hour, after any outage", func(ctx SpecContext) {
			for _, broken := range []http.HandlerFunc{
				func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
				func(w http.ResponseWriter, _ *http.Request) { begin(w); panic(http.ErrAbortHandler) },
				status(http.StatusForbidden), status(http.StatusTooManyRequests), status(http.StatusServiceUnavailable),
			} {
				publisher.answer = broken
				Expect(has(ctx, "a")).To(BeTrue())
				clock.advance(renewInterval)
			}
			clock.advance(time.Hour)
			Expect(find(ctx, "a")).To(MatchError(client.ErrUnreachable))
		})

		It("stops using them after a final response", func(ctx SpecContext) {
			for _, definite := range []http.HandlerFunc{status(http.StatusNotFound), status(http.StatusGone),
				status(http.StatusFound), func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write([]byte("{}"))
				}} {
				publisher.answer = definite
				Expect(find(ctx, "a")).NotTo(Succeed())
				publish("a")
				Expect(has(ctx, "a")).To(BeTrue())
				clock.advance(time.Minute)
			}
		})

		It("does not use a set without the wanted key", func(ctx SpecContext) {
			publisher.answer = status(http.StatusServiceUnavailable)
			Expect(has(ctx, "a")).To(BeTrue())
			Expect(find(ctx, "b")).To(MatchError(client.ErrUnreachable))
			publish("b")
			Expect(has(ctx, "b")).To(BeTrue())
		})
	})
})

var _ = Describe("Finding the document of a connected client", Label("C56", "D33"), func() {
	It("uses an expired one for an hour while it cannot be renewed, and for authorization requests longer",
		Label("C57"), func(ctx SpecContext) {
			publisher, clock := newSite(), newClock()
			directory := openDirectory(Config{Now: clock.now, RootCAs: publisher.roots(), AllowLoopback: true},
				patient())
			id := publisher.client("/client.json")
			Expect(directory.Connected(ctx, id)).NotTo(BeNil())
			publisher.answer = status(http.StatusServiceUnavailable)
			clock.advance(time.Minute)
			Expect(directory.Connected(ctx, id)).NotTo(BeNil())
			clock.advance(time.Hour)
			Expect(directory.Connected(ctx, id)).Error().To(MatchError(client.ErrUnreachable))
			Expect(directory.Client(ctx, id, "")).NotTo(BeNil())
		})
})

// begin sends the header and the first byte of a response.
func begin(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "500")
	_, _ = w.Write([]byte("{"))
	_ = http.NewResponseController(w).Flush()
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}
