package telemetry_test

import (
	"net/http"
	"net/http/httptest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/http/telemetry"
)

// scrape reads what Prometheus would.
func scrape(m *telemetry.Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	return w.Body.String()
}

var _ = Describe("Counting decisions", func() {
	It("counts decisions by event, and exports zero for the others", func() {
		m := telemetry.NewMetrics(time.Now, "refreshed", "grant_ended")
		m.Decided("refreshed")
		m.Decided("refreshed")
		Expect(scrape(m)).To(And(
			ContainSubstring("pasteport_decisions_total{event=\"refreshed\"} 2\n"),
			ContainSubstring("pasteport_decisions_total{event=\"grant_ended\"} 0\n")))
	})

	It("does not use unknown events as labels", func() {
		m := telemetry.NewMetrics(time.Now, "refreshed")
		m.Decided("hostile-1")
		m.Decided("hostile-2")
		Expect(scrape(m)).
			To(And(Not(ContainSubstring("hostile")),
				ContainSubstring("pasteport_decisions_total{event=\"_OTHER\"} 2\n")))
	})

	It("reads a gauge at each scrape", func() {
		m, open := telemetry.NewMetrics(time.Now), 1.0
		m.Gauge("pasteport_mcp_streams", "Streams that are open.", func() float64 { return open })
		open = 3
		Expect(scrape(m)).To(ContainSubstring("\npasteport_mcp_streams 3\n"))
	})
})
