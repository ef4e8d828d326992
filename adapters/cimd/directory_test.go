package cimd

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
	"github.com/pasteport/pasteport/domain/quota"
)

var quiet = log.New(io.Discard, "", 0)

var _ = Describe("Fetching a client's metadata document", func() {
	var (
		publisher *site
		options   Config
		bounds    limits
		id        oauth.ClientID
	)

	BeforeEach(func() {
		publisher, bounds = newSite(), patient()
		options = Config{
			Issuer:        "https://cms.example",
			Now:           newClock().now,
			RootCAs:       publisher.roots(),
			AllowLoopback: true,
		}
		id = publisher.client("/client.json")
	})

	fetch := func(ctx context.Context) (*client.Metadata, error) {
		return openDirectory(options, bounds).Client(ctx, id, "")
	}

	var _ client.Directory = New(Config{})

	It("sends one GET with only Accept, Accept-Encoding and User-Agent", Label("C11"), func(ctx SpecContext) {
		var seen *http.Request
		publisher.answer = func(w http.ResponseWriter, r *http.Request) { seen = r.Clone(ctx); publisher.publish(w, r) }
		_, err := fetch(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(seen.Method).To(Equal(http.MethodGet))
		Expect(seen.ContentLength).To(BeZero())
		Expect(seen.Header).To(Equal(http.Header{
			"Accept": {"application/json"}, "Accept-Encoding": {"identity"},
			"User-Agent": {"Pasteport (+https://cms.example)"},
		}))
	})

	It("requests the client_id unchanged, over a new connection each time",
		Label("C6", "C10", "C17"), func(ctx SpecContext) {
			var asked []string
			publisher.answer = func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.RequestURI)
				publisher.publish(w, r)
			}
			paths := []string{"/c?b=2&a=1", "/a%2Fb", "/%252e%252e/c", "/c?"}
			directory := openDirectory(options, bounds)
			for _, path := range paths {
				Expect(directory.Client(ctx, publisher.client(path), "")).NotTo(BeNil())
			}
			Expect(asked).To(Equal(paths))
			Expect(publisher.connections.Load()).To(BeEquivalentTo(len(paths)))
		})

	It("reads the types of JSON, and encodings that were not asked for",
		Label("C14", "C15"), func(ctx SpecContext) {
			for _, contentType := range []string{"application/json; charset=utf-8", "Application/JSON",
				"application/client-metadata+json"} {
				publisher.respond(http.StatusOK, document(id.String()), "Content-Type", contentType)
				Expect(fetch(ctx)).NotTo(BeNil(), contentType)
			}
			for _, contentType := range []string{"", "text/json", "application/+json", "application/jsonp"} {
				publisher.respond(http.StatusOK, document(id.String()), "Content-Type", contentType)
				Expect(fetch(ctx)).Error().To(MatchError(client.ErrUnreachable), contentType)
			}
			for encoding, text := range map[string]string{"identity": document(id.String()),
				"gzip": gzipped(document(id.String())), "X-Gzip": gzipped(document(id.String()))} {
				publisher.respond(http.StatusOK, text, "Content-Encoding", encoding)
				Expect(fetch(ctx)).NotTo(BeNil(), encoding)
			}
		})

	It("reads 5 KiB, and no more of a compressed document", Label("C15"), func(ctx SpecContext) {
		text := document(id.String())
		publisher.respond(http.StatusOK, text+strings.Repeat(" ", 5<<10-len(text)))
		Expect(fetch(ctx)).NotTo(BeNil())
		publisher.respond(http.StatusOK, text+strings.Repeat(" ", 5<<10-len(text)+1))
		Expect(fetch(ctx)).Error().To(MatchError(ContainSubstring("has more than 5120")))
		publisher.respond(http.StatusOK, gzipped(text+strings.Repeat(" ", 1<<20)), "Content-Encoding", "gzip")
		Expect(fetch(ctx)).Error().To(MatchError(client.ErrNoDocument))
	})

	It("fails at once when the announced length is too large", Label("C15"), func(ctx SpecContext) {
		publisher.answer = func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "5121")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
		Expect(fetch(ctx)).Error().To(And(MatchError(client.ErrUnreachable),
			MatchError(ContainSubstring("announces more than 5120"))))
	}, SpecTimeout(10*time.Second))

	It("refuses a request for which no slot becomes free, and counts that",
		Label("C21", "C45", "C52"), func(ctx SpecContext) {
			var counted []quota.Effect
			options.Limited = func(_ quota.Limit, effect quota.Effect) { counted = append(counted, effect) }
			bounds.slots = 1
			directory := openDirectory(options, bounds)
			leave := fill(ctx, directory)
			Expect(directory.Client(ctx, id, "")).Error().
				To(MatchError(And(ContainSubstring("no slot"), ContainSubstring("too many"))))
			Expect(counted).To(Equal([]quota.Effect{quota.Slowed, quota.Refused}))
			leave()
			Expect(directory.Client(ctx, id, "")).NotTo(BeNil())
		})
})

func gzipped(text string) string {
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	_, err := writer.Write([]byte(text))
	Expect(errors.Join(err, writer.Close())).To(Succeed())
	return compressed.String()
}
