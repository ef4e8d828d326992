package upstream

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/credential"
)

var _ = Describe("Many upstreams at the addresses of people", Label("U18", "U29"), func() {
	It("keep the cookies of a session that outlives the connections to its upstream", func() {
		router := NewRouter(credential.Target{}, Options{Credential: None{}, Logger: slog.New(slog.DiscardHandler)})
		const first, key = "https://one.example/mcp", "ada\x00session"
		sent := func(url string) []*http.Cookie {
			to, err := router.at(url)
			Expect(err).NotTo(HaveOccurred())
			request := httptest.NewRequest(http.MethodPost, url, nil)
			to.cookies.addTo(request, key)
			return request.Cookies()
		}
		to, err := router.at(first)
		Expect(err).NotTo(HaveOccurred())
		to.cookies.keep(key, []*http.Cookie{{Name: "route", Value: "a", Path: "/"}})
		for i := range maxAddresses {
			Expect(sent("https://" + strconv.Itoa(i) + ".example/mcp")).To(BeEmpty())
		}
		Expect(sent(first)).To(ConsistOf(HaveField("Value", "a")))
	})
})
