package features_test

import (
	"bytes"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector receives spans in OTLP over HTTP, like the OpenTelemetry collector.
type Collector struct {
	*httptest.Server
	mu    sync.Mutex
	raw   bytes.Buffer
	spans []*otlp.Span
	names []string // service names
}

func NewCollector() *Collector {
	c := &Collector{}
	c.Server = httptest.NewServer(c)
	DeferCleanup(c.Close)
	return c
}

func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer GinkgoRecover()
	body := must(io.ReadAll(r.Body))
	Expect(r.URL.Path).To(Equal("/v1/traces"))
	var sent collector.ExportTraceServiceRequest
	Expect(proto.Unmarshal(body, &sent)).To(Succeed())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw.Write(body)
	for _, of := range sent.ResourceSpans {
		for _, attribute := range of.Resource.Attributes {
			if attribute.Key == "service.name" {
				c.names = append(c.names, attribute.Value.GetStringValue())
			}
		}
		for _, scope := range of.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// Names returns the names of the spans so far.
func (c *Collector) Names() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, span := range c.spans {
		names = append(names, span.Name)
	}
	return names
}

var _ = Describe("Tracing requests", Label("operations"), func() {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var into *Collector
	BeforeEach(func() {
		into = NewCollector()
		GinkgoT().Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", into.URL)
	})

	It("sends a span for each request, named by its route, before it ends", func(ctx SpecContext) {
		service := Operate()
		service.Call(ctx, service.NewClient().Connect(ctx).Access)
		Get(ctx, service.Issuer+"/hostile-path?hostile=query")
		service.Shutdown()
		Expect(into.Names()).To(Equal([]string{"GET /oauth/authorize", "POST /oauth/authorize", "POST /oauth/token",
			"POST /mcp", "GET"}))
		Expect(into.names).To(HaveEach("pasteport"))
		for _, span := range into.spans {
			Expect(span.Kind).To(Equal(otlp.Span_SPAN_KIND_SERVER))
		}
	})

	It("belongs to the caller's trace, and so do the lines of the log", func(ctx SpecContext) {
		service := Operate()
		Post(ctx, service.Issuer+"/oauth/token", nil, with("Traceparent", parent))
		Post(ctx, service.Issuer+"/oauth/token", nil, with("Traceparent", "00-no-trace-01"))
		service.Shutdown()
		Expect(into.spans).To(HaveLen(2))
		Expect(hex.EncodeToString(into.spans[0].TraceId)).To(Equal("0af7651916cd43dd8448eb211c80319c"))
		Expect(hex.EncodeToString(into.spans[0].ParentSpanId)).To(Equal("b7ad6b7169203331"))
		Expect(into.spans[1].ParentSpanId).To(BeEmpty())
		Expect(linesWith(service.Log.String(), `"trace":"0af7651916cd43dd8448eb211c80319c"`)).
			To(ContainElement(ContainSubstring(`"msg":"request"`)))
	})

	It("marks server errors, and not refused requests", func(ctx SpecContext) {
		service := Operate()
		client := service.NewClient()
		page := client.Consent(ctx)
		service.LoseSite()
		Expect(page.Approve(ctx, service.Token).StatusCode).To(Equal(http.StatusServiceUnavailable))
		Post(ctx, service.Issuer+"/oauth/token", nil)
		service.Shutdown()
		Expect(into.spans[1]).
			To(And(HaveField("Name", "POST /oauth/authorize"), HaveField("Status.Code", otlp.Status_STATUS_CODE_ERROR)))
		Expect(into.spans[2]).
			To(And(HaveField("Name", "POST /oauth/token"), HaveField("Status.Code", otlp.Status_STATUS_CODE_UNSET)))
	})

	It("sends no secret and no client input to the collector", func(ctx SpecContext) {
		service := Operate()
		client := service.NewClient()
		code := client.Authorize(ctx)
		tokens := client.Token(ctx, client.Exchange(code)).Tokens()
		client.Token(ctx, client.Refresh(tokens.Refresh))
		Get(ctx, service.Issuer+"/"+service.Token+"?"+client.Verifier)
		service.Shutdown()
		Expect(into.spans).NotTo(BeEmpty())
		for _, secret := range []string{code, tokens.Access, tokens.Refresh, service.Token, client.Verifier,
			client.State, client.ID, client.Challenge()} {
			Expect(into.raw.String()).NotTo(ContainSubstring(secret))
		}
	})

	DescribeTable("is off", func(ctx SpecContext, name, value string) {
		GinkgoT().Setenv(name, value)
		service := Operate()
		Post(ctx, service.Issuer+"/oauth/token", nil, with("Traceparent", parent))
		service.Shutdown()
		Expect(into.Names()).To(BeEmpty())
		Expect(service.Log.String()).NotTo(ContainSubstring("0af7651916cd43dd8448eb211c80319c"))
	},
		Entry("without a collector", "OTEL_EXPORTER_OTLP_ENDPOINT", ""),
		Entry("when the SDK is disabled", "OTEL_SDK_DISABLED", "true"),
		Entry("when the exporter is none", "OTEL_TRACES_EXPORTER", "none"),
	)

	It("refuses an unsupported protocol", func(ctx SpecContext) {
		GinkgoT().Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
		ran := Run(ctx, "serve", "--dev", "--addr", "127.0.0.1:0", "--admin-addr", "off", "--data", GinkgoT().TempDir())
		Expect(ran.Code).To(Equal(1))
		Expect(ran.Err).To(ContainSubstring(`OTEL_EXPORTER_OTLP_PROTOCOL is "grpc": choose http/protobuf`))
	})

	It("continues when the collector does not respond, and logs it", func(ctx SpecContext) {
		into.Close()
		service := Operate()
		Expect(Post(ctx, service.Issuer+"/oauth/token", nil).StatusCode).To(Equal(http.StatusBadRequest))
		service.Shutdown()
		Expect(service.Log.String()).To(ContainSubstring("cannot send traces"))
	})
})
