package pages

import (
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
)

// What the page itself costs, of all that a request for it costs.
func BenchmarkWriteConsent(b *testing.B) {
	RegisterTestingT(b)
	edition, page := drawn(Appearance{}).For("de"), plain()
	b.ReportAllocs()
	for b.Loop() {
		if err := edition.WriteConsent(httptest.NewRecorder(), http.StatusOK, page); err != nil {
			b.Fatal(err)
		}
	}
}
