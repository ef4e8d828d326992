package pages

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/text/language"
)

// everyByte is each of the 256 bytes; everyPair lets each printable character stand before a letter
// and at the end of an entity.
var everyByte, everyPair = func() (bytes, pairs string) {
	for i := range 256 {
		bytes += string([]byte{byte(i)})
	}
	for c := '!'; c <= '~'; c++ {
		pairs += string(c) + "a&#" + string(c) + ";"
	}
	return bytes, pairs
}()

// expectTheTemplates compares a page with what the templates make of it, byte for byte.
func expectTheTemplates(e Edition, c Consent) {
	GinkgoHelper()
	w := httptest.NewRecorder()
	Expect(e.WriteConsent(w, http.StatusOK, c)).To(Succeed())
	page, err := draw(e.sheet(styleNonce(w)).consent(c))
	Expect(err).NotTo(HaveOccurred())
	if body := w.Body.String(); body != string(page) { // which Equal would print whole
		Expect(strings.Split(body, "\n")).To(HaveExactElements(strings.Split(string(page), "\n")))
	}
}

var _ = Describe("Filling a form", Label("A35", "A36", "A37"), func() {
	DescribeTable("makes the page that the templates make", func(hostile string) {
		e := english()
		for _, change := range []func(*Consent){
			func(c *Consent) { c.ClientName = hostile },
			func(c *Consent) { c.ClientHost = hostile },
			func(c *Consent) { c.RedirectHost = hostile },
			func(c *Consent) { c.Ticket = hostile },
			func(c *Consent) {
				c.Server, c.Action, c.Manage, c.Problem = Server{hostile, hostile}, hostile, hostile, hostile
			},
			func(c *Consent) { c.Permissions = permissionsOf(hostile, hostile) },
			func(c *Consent) {
				*c = crowded()
				c.ClientName, c.ClientHost, c.RedirectHost, c.Ticket = hostile, hostile, hostile, hostile
			},
		} {
			expectTheTemplates(e, plain(change))
			expectTheTemplates(e, plain(change)) // now that its form is kept
		}
	},
		Entry("of nothing", ""), Entry("of a blank", " "), Entry("of what cannot be seen", "\u202e\u200b\u3164"),
		Entry("of tags", `</title></bdi><script>alert(1)</script><!--`),
		Entry("of the end of an attribute", `" autofocus onfocus='x' `+"`"),
		Entry("of entities", "&amp;&lt;&#60;&#x3c;&lt&"), Entry("of plus signs", "1+1&#43;1"),
		Entry("of actions", `{{.Page}}{{template "key"}}{{"`),
		Entry("of formats", "%s%[1]s%!d%%"), Entry("of NUL", "a\x00b"),
		Entry("of what is not UTF-8", "a\xff\xc0\xafb\xe2\x80"), Entry("of lines", "a\r\nb\u2028c"),
		Entry("from right to left", "\u202eevil\u202c \u05d0\u2066"), Entry("of gaps", "01234"),
		Entry("of a script's address", "javascript:alert(1)"), Entry("of every byte", everyByte),
		Entry("of every character", everyPair),
		Entry("too long to be shown", strings.Repeat("<&+", 100)),
		Entry("of wide characters", strings.Repeat("漢<", 60)),
	)

	It("makes every page in every language", func() {
		pages := drawn(Appearance{
			Name:      "<b>&+",
			Accent:    "#0b5a4a",
			Logo:      []byte("<svg/>"),
			TokenHelp: "https://cms.example/?a=1&b=2",
		})
		for _, tag := range languages {
			for flags := range 1 << 8 {
				set := func(bit int) bool { return flags>>bit&1 == 1 }
				page := plain(func(c *Consent) {
					c.Loopback, c.PrivateScheme, c.ForeignRedirect, c.Unnamed, c.Offline = set(0), set(1), set(2),
						set(3), set(4)
					if set(5) {
						c.ClientName = ""
					}
					if set(6) {
						c.RedirectHost = ""
					}
					if set(7) {
						c.Problem = "Paste your token first."
					}
				})
				expectTheTemplates(Edition{pages, tag}, page)
			}
		}
		Expect(pages.forms.Len()).To(Equal(keptForms))
	})

	It("lets no request add a gap, even with the mark", func() {
		e, mark := english(), "THEMARK"
		form, err := e.drawForm(plain(), mark)
		Expect(err).NotTo(HaveOccurred())
		for _, smuggled := range []string{mark, mark + ticketGap, mark + mark, mark + "9", mark[:4], ticketGap} {
			var paper bytes.Buffer
			form.fill(&paper, smuggled, smuggled, smuggled, smuggled, smuggled)
			page, err := draw(e.sheet(smuggled).consent(plain(func(c *Consent) {
				c.ClientName, c.ClientHost, c.RedirectHost, c.Ticket = smuggled, smuggled, smuggled, smuggled
			})))
			Expect(err).NotTo(HaveOccurred())
			Expect(paper.String()).To(Equal(string(page)))
		}
	})

	It("caches one form for equal requests", func() {
		e := english()
		for i := range 100 {
			expectTheTemplates(e, plain(func(c *Consent) {
				text := fmt.Sprint("<", i)
				c.ClientName, c.ClientHost, c.RedirectHost, c.Ticket = text, text, text, text
			}))
		}
		Expect(e.pages.forms.Len()).To(Equal(1))
	})

	It("never sends the page of another request", func() {
		e := english()
		var readers sync.WaitGroup
		for i := range 8 {
			readers.Go(func() {
				defer GinkgoRecover()
				for range 50 {
					expectTheTemplates(e, plain(func(c *Consent) {
						c.Ticket, c.Loopback = strings.Repeat(fmt.Sprint(i), 100), i%2 == 0
					}))
				}
			})
		}
		readers.Wait()
	})

	It("tells sites, languages and sentences apart", func() {
		gazette, herald := drawn(Appearance{Name: "Gazette"}), drawn(Appearance{Name: "Herald"})
		for _, pages := range []*Pages{gazette, herald} {
			for _, tag := range []language.Tag{language.English, language.German} {
				for _, grants := range [][]string{nil, {""}, {"a", "b"}, {"ab"}, {"b", "a"}, {`a","b`}} {
					page := plain(func(c *Consent) { c.Permissions = permissionsOf(grants...) })
					expectTheTemplates(Edition{pages, tag}, page)
				}
			}
		}
	})
})
