package cimd

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var quiet = log.New(io.Discard, "", 0)

var _ = Describe("Fetching a client's metadata document", func() {
	var (
		client  *site
		options Config
		bounds  limits
		id      oauth.ClientID
	)

	BeforeEach(func() {
		client, bounds = newSite(), patient()
		options = Config{
			Issuer:        "https://cms.example",
			Now:           newClock().now,
			RootCAs:       client.roots(),
			AllowLoopback: true,
		}
		id = client.client("/client.json")
	})

	fetch := func(ctx context.Context) (*oauth.ClientMetadata, error) {
		return openDirectory(options, bounds).Client(ctx, id, "")
	}

	var _ oauth.ClientDirectory = New(Config{})

	It("sends one GET with only Accept, Accept-Encoding and User-Agent", Label("C11"), func(ctx SpecContext) {
		var seen *http.Request
		client.answer = func(w http.ResponseWriter, r *http.Request) { seen = r.Clone(ctx); client.publish(w, r) }
		_, err := fetch(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(seen.Method).To(Equal(http.MethodGet))
		Expect(seen.ContentLength).To(BeZero())
		Expect(seen.Header).To(Equal(http.Header{
			"Accept": {"application/json"}, "Accept-Encoding": {"identity"},
			"User-Agent": {"Pasteport (+https://cms.example)"},
		}))
	})

	DescribeTable("requests the client_id unchanged", Label("C6", "C10"),
		func(ctx SpecContext, path string) {
			var asked string
			client.answer = func(w http.ResponseWriter, r *http.Request) { asked = r.RequestURI; client.publish(w, r) }
			id = client.client(path)
			_, err := fetch(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(asked).To(Equal(path))
		},
		Entry("when it has a query", "/c?b=2&a=1"),
		Entry("when it has an encoded slash", "/a%2Fb"),
		Entry("when it has a doubly encoded dot", "/%252e%252e/c"),
		Entry("when it ends in an empty query", "/c?"),
	)

	It("makes a new connection for every fetch", Label("C17"), func(ctx SpecContext) {
		directory := openDirectory(options, bounds)
		for _, path := range []string{"/a", "/b", "/c"} {
			_, err := directory.Client(ctx, client.client(path), "")
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(client.connections.Load()).To(BeEquivalentTo(3))
	})

	It("logs that the client publishes redirect URIs that cannot be used", Label("C27"), func(ctx SpecContext) {
		var logged bytes.Buffer
		options.Logger = slog.New(slog.NewTextHandler(&logged, nil))
		client.respond(http.StatusOK, strings.Replace(document(id.String()), `done"]`, `done","relative"]`, 1))
		Expect(fetch(ctx)).NotTo(BeNil())
		Expect(logged.String()).
			To(And(ContainSubstring(id.String()), ContainSubstring("ignored=1"), Not(ContainSubstring("relative"))))
	})

	It("fails for every other status, and for every other type and encoding", Label("C12", "C13", "C14", "C15"),
		func(ctx SpecContext) {
			fails := func(status int, headers ...string) {
				GinkgoHelper()
				before := client.fetches.Load()
				client.respond(status, document(id.String()), headers...)
				_, err := fetch(ctx)
				Expect(err).To(MatchError(oauth.ErrMetadataUnreachable), fmt.Sprint(status, headers))
				Expect(client.fetches.Load()-before).To(BeEquivalentTo(1), fmt.Sprint(status, headers))
			}
			for _, status := range []int{201, 203, 301, 303, 307, 308} {
				fails(status, "Location", "/elsewhere.json")
			}
			for _, contentType := range []string{"", "text/json", "application/+json", "application/jsonp"} {
				fails(http.StatusOK, "Content-Type", contentType)
			}
			fails(http.StatusOK, "Content-Encoding", "gzip, gzip")
		})

	DescribeTable("reads a document whose host names an encoding that was not asked for:", Label("C15"),
		func(ctx SpecContext, encoding string, encode func(string) string) {
			client.respond(http.StatusOK, encode(document(id.String())), "Content-Encoding", encoding)
			Expect(fetch(ctx)).NotTo(BeNil())
		},
		Entry("identity", "identity", func(text string) string { return text }),
		Entry("gzip", "gzip", gzipped),
		Entry("gzip by its old name", "X-Gzip", gzipped),
	)

	It("reads no more of a compressed document than its limit", Label("C15"), func(ctx SpecContext) {
		large := document(id.String()) + strings.Repeat(" ", 1<<20)
		client.respond(http.StatusOK, gzipped(large), "Content-Encoding", "gzip")
		_, err := fetch(ctx)
		Expect(err).To(MatchError(oauth.ErrMetadataNoDocument))
	})

	DescribeTable("reads a document", Label("C14"),
		func(ctx SpecContext, contentType string) {
			client.respond(http.StatusOK, document(id.String()), "Content-Type", contentType)
			Expect(fetch(ctx)).NotTo(BeNil())
		},
		Entry("when its type has parameters", "application/json; charset=utf-8"),
		Entry("when its type is written in capitals", "Application/JSON"),
		Entry("when its type ends in +json", "application/client-metadata+json"),
	)

	Context("when the document is large", Label("C15"), func() {
		padded := func(size int) string {
			empty := document(id.String(), `"note":""`)
			return document(id.String(), `"note":"`+strings.Repeat("x", size-len(empty))+`"`)
		}

		It("reads 5 KiB", func(ctx SpecContext) {
			client.respond(http.StatusOK, padded(5<<10))
			Expect(fetch(ctx)).NotTo(BeNil())
		})

		It("fails for one byte more", func(ctx SpecContext) {
			client.respond(http.StatusOK, padded(5<<10+1))
			_, err := fetch(ctx)
			Expect(err).To(And(MatchError(oauth.ErrMetadataUnreachable),
				MatchError(ContainSubstring("has more than 5120"))))
		})

		It("fails at once when the length is announced", func(ctx SpecContext) {
			client.answer = func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Length", "5121")
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
			_, err := fetch(ctx)
			Expect(err).To(And(MatchError(oauth.ErrMetadataUnreachable),
				MatchError(ContainSubstring("announces more than 5120"))))
		}, SpecTimeout(10*time.Second))
	})
})

func gzipped(text string) string {
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	_, err := writer.Write([]byte(text))
	Expect(errors.Join(err, writer.Close())).To(Succeed())
	return compressed.String()
}
