package upstream

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The cookies of a session", Label("U18"), func() {
	const key = "ada\x00session"
	var kept *cookies
	BeforeEach(func() {
		target, err := url.Parse("https://mcp.example/api/mcp")
		Expect(err).NotTo(HaveOccurred())
		kept = newCookies(target, "")
	})
	sent := func() []*http.Cookie {
		request := httptest.NewRequest(http.MethodPost, "https://mcp.example/api/mcp", nil)
		kept.addTo(request, key)
		return request.Cookies()
	}

	It("are kept for the path of the upstream only, so that others do not pile up", func() {
		for i := range 100 {
			kept.keep(key, []*http.Cookie{
				{Name: fmt.Sprint("c", i), Value: strings.Repeat("x", 1000), Path: "/other"},
				{Name: fmt.Sprint("d", i), Value: "x", Domain: "other.example"},
				{Name: "route", Value: fmt.Sprint(i), Path: "/api"},
			})
		}
		jar, _ := kept.byKey.Get(key)
		other, err := url.Parse("https://mcp.example/other")
		Expect(err).NotTo(HaveOccurred())
		Expect(jar.Cookies(other)).To(BeEmpty())
		Expect(sent()).To(HaveExactElements(And(HaveField("Name", "route"), HaveField("Value", "99"))))
	})

	DescribeTable("are forgotten when there are too many:", func(count, length, remain int) {
		for i := range count {
			kept.keep(key, []*http.Cookie{{Name: fmt.Sprintf("c%02d", i), Value: strings.Repeat("x", length)}})
		}
		Expect(sent()).To(HaveLen(remain))
	}, Entry("not with 50", 50, 10, 50), Entry("with 51", 51, 10, 0), Entry("not with 4 KiB", 2, 2045, 2),
		Entry("with more than 4 KiB", 2, 2046, 0))

	It("are deleted when the upstream deletes them", func() {
		kept.keep(key, []*http.Cookie{{Name: "route", Value: "a", Path: "/"}, {Name: "other", Value: "b", Path: "/"}})
		kept.keep(key, []*http.Cookie{{Name: "route", Path: "/", MaxAge: -1},
			{Name: "other", Path: "/", Expires: time.Unix(1, 0)}})
		Expect(sent()).To(BeEmpty())
	})
})
