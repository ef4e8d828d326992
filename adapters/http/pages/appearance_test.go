package pages

import (
	"bytes"
	"net/http/httptest"
	"regexp"
	"strings"

	"github.com/lucasb-eyer/go-colorful"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Looking like the site", func() {
	show := func(appearance Appearance) *httptest.ResponseRecorder {
		GinkgoHelper()
		w := httptest.NewRecorder()
		Expect(drawn(appearance).For("").WriteConsent(w, 200, plain())).To(Succeed())
		return w
	}
	picture := []byte("\x89PNG\r\n\x1a\n and more")

	It("takes the site's name, and still shows the address", func() {
		page := show(Appearance{Name: "The Gazette"}).Body.String()
		Expect(page).To(ContainSubstring("Your API token for <bdi>The Gazette</bdi>"))
		Expect(page).To(ContainSubstring(`<bdi class="host" dir="ltr">https://cms.example/mcp</bdi>`))
	})

	It("shows where people find their token, in another window that learns nothing", func() {
		Expect(show(Appearance{TokenHelp: "https://cms.example/account/tokens?x=1&y=2"}).Body.String()).
			To(ContainSubstring(
				`<a href="https://cms.example/account/tokens?x=1&amp;y=2" target="_blank" rel="noopener ` +
					`noreferrer">Where do I find this token?</a>`))
		Expect(show(Appearance{}).Body.String()).NotTo(ContainSubstring("_blank"))
	})

	It("puts the logo into the page itself, and lets pages load nothing else", func() {
		for _, logo := range [][2]string{{string(picture), "png"}, {"\xff\xd8\xff and more", "jpeg"},
			{"RIFF\x00\x00\x00\x00WEBPVP8 ", "webp"}, {"<svg xmlns='http://www.w3.org/2000/svg'/>", "svg+xml"},
			{"<?xml version='1.0'?>\n<svg/>", "svg+xml"}} {
			w := show(Appearance{Logo: []byte(logo[0])})
			Expect(w.Body.String()).To(ContainSubstring(`<img class="logo" src="data:image/` + logo[1] + `;base64,`))
			Expect(w.Header().Get("Content-Security-Policy")).To(HaveSuffix("; img-src data:"))
		}
		Expect(show(Appearance{}).Header().Get("Content-Security-Policy")).NotTo(ContainSubstring("img-src"))
	})

	It("makes any accent readable on light and on dark paper", func() {
		for _, accent := range strings.Fields("#0b5a4a #ffdd00 #ffffff #000000 #808080 #ff0000 #0000ff #00ff00 #f0f") {
			keys := regexp.MustCompile(`--key:(#\w+);--key-deep:(#\w+);--on-key:(#\w+)`).
				FindAllStringSubmatch(Appearance{Accent: accent}.colours(), -1)
			Expect(keys).To(HaveLen(2))
			for i, paper := range []colorful.Color{white, darkBackground} {
				for _, key := range keys[i][1:3] {
					color, err := colorful.Hex(key)
					Expect(err).NotTo(HaveOccurred())
					text, err := colorful.Hex(keys[i][3])
					Expect(err).NotTo(HaveOccurred())
					Expect(contrast(color, paper)).To(BeNumerically(">=", 4.5), accent)
					Expect(contrast(color, text)).To(BeNumerically(">=", 4.5), accent)
				}
			}
		}
		Expect(Appearance{Accent: "#0b5a4a"}.colours()).To(ContainSubstring("--key:#0b5a4a;"), "which is readable")
	})

	DescribeTable("names the mistake", func(appearance Appearance, words string) {
		_, err := New("cms.example", appearance, nil)
		Expect(err).To(MatchError(ContainSubstring(words)))
	},
		Entry("with the name", Appearance{Name: string(bytes.Repeat([]byte("x"), 61))},
			"Appearance.Name is longer than 60 characters"),
		Entry("with the accent", Appearance{Accent: "green"},
			`Appearance.Accent is "green": write a colour as #0b5a4a`),
		Entry("with the accent that would be more", Appearance{Accent: "#fff;}body{display:none"}, "Appearance.Accent"),
		Entry("with a logo that is not a picture", Appearance{Logo: []byte("<html>")}, "Appearance.Logo"),
		Entry("with a logo that is too large", Appearance{Logo: append(picture, make([]byte, 12<<10)...)},
			"Appearance.Logo"),
		Entry("with the address of the help", Appearance{TokenHelp: "javascript:alert(1)"}, "Appearance.TokenHelp"),
	)
})
