package pages

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/text/language"
)

// spoken are the texts that the templates put into the reader's language.
func spoken() map[string]bool {
	GinkgoHelper()
	texts, unread := map[string]bool{}, 0
	templates, err := filepath.Glob("*.templ")
	Expect(err).NotTo(HaveOccurred())
	for _, template := range templates {
		source, err := os.ReadFile(template)
		Expect(err).NotTo(HaveOccurred())
		for _, found := range regexp.MustCompile(`\bs\.(?:say|tell)\("([^"]+)"`).
			FindAllStringSubmatch(string(source), -1) {
			texts[found[1]] = true
		}
		unread += len(regexp.MustCompile(`\bs\.(say|tell)\([^"]`).FindAllString(string(source), -1))
	}
	Expect(unread).To(Equal(13), "texts that others bring along: the title twice, the text, the advice, the problem "+
		"twice, that of a field, what was done, scopes five times")
	Expect(texts).NotTo(BeEmpty())
	return texts
}

var _ = Describe("Speaking the reader's language", func() {
	DescribeTable("goes by Accept-Language",
		func(accept, tag string) { Expect(languageFor(accept).String()).To(Equal(tag)) },
		Entry(nil, "", "en"), Entry(nil, "de", "de"), Entry(nil, "de-CH,en;q=0.5", "de"), Entry(nil, "fr-CA", "fr"),
		Entry(nil, "es-419", "es"),
		Entry(nil, "ja-JP", "ja"), Entry(nil, "pt,ja;q=0.2", "ja"), Entry(nil, "en-GB,de;q=0.9", "en"),
		Entry(nil, "tlh", "en"),
		Entry(nil, "de;q=0, fr", "fr"), Entry(nil, "*", "en"), Entry(nil, "<script>;;q=x", "en"),
		Entry("much too long", strings.Repeat("de,", 4000), "de"),
	)

	for _, tag := range languages[1:] {
		It("has every text in "+tag.String()+", with the same gaps", func() {
			translated := readLocale(tag, WordToken)
			for english := range spoken() {
				Expect(translated).To(HaveKey(english))
			}
			for english, text := range translated {
				Expect(strings.TrimSpace(text)).NotTo(BeEmpty(), english)
				Expect(strings.Count(text, "%s")).To(Equal(strings.Count(english, "%s")), english)
			}
		})

		It("draws whole pages in "+tag.String(), func() {
			w := httptest.NewRecorder()
			Expect(drawn(Appearance{}).For(tag.String()).WriteConsent(w, http.StatusOK, crowded())).To(Succeed())
			Expect(w.Header().Get("Content-Language")).To(Equal(tag.String()))
			page := w.Body.String()
			Expect(page).To(ContainSubstring(`<html lang="` + tag.String() + `">`))
			for english := range spoken() {
				if !strings.HasPrefix(readLocale(tag, WordToken)[english], english) {
					Expect(page).NotTo(ContainSubstring(">" + english))
				}
			}
			Expect(page).NotTo(Or(ContainSubstring("%!"), ContainSubstring("&amp;#")))
		})
	}

	for _, tag := range languages {
		It("calls what people paste a key in every text in "+tag.String()+", if the site does", func() {
			replaced := readLocale(tag, WordKey)
			for english := range readLocale(language.German, WordToken) {
				text := cmp.Or(replaced[english], english)
				Expect(text).NotTo(MatchRegexp(`(?i)token|jeton|トークン`))
				Expect(strings.Count(text, "%s")).To(Equal(strings.Count(english, "%s")), english)
			}
			for english := range readLocale(language.English, WordKey) {
				Expect(replaced).To(HaveKey(english))
			}
		})
	}

	DescribeTable("says “your” of the reader's things only, and never of the app's:",
		func(tag language.Tag, yours string) {
			for english, text := range readLocale(tag, WordToken) {
				if regexp.MustCompile(yours).MatchString(text) {
					Expect(english).To(MatchRegexp(`\b[Yy](our|ou)\b`), text)
					Expect(english).NotTo(MatchRegexp(`\b[Ii]ts\b`), text)
				}
			}
		},
		Entry("German", language.German, `\bIhr(e[mnrs]?)?\b`),
		Entry("Spanish, where one word means both", language.Spanish, `\b[Ss]us?\b`),
		Entry("French", language.French, `\b([Vv]otre|[Vv]os)\b`),
	)

	It("lets nothing from outside become markup in any language", func() {
		for _, tag := range languages {
			w := httptest.NewRecorder()
			page := plain(func(c *Consent) {
				c.ClientHost, c.RedirectHost, c.ForeignRedirect, c.Problem = "<b>%s", "<b>%d", true, "<b>%v"
				c.Permissions = permissionsOf("100% of <b>%d")
			})
			Expect(Edition{drawn(Appearance{Name: "<b>%x"}), tag}.WriteConsent(w, http.StatusOK, page)).To(Succeed())
			Expect(w.Body.String()).NotTo(ContainSubstring("<b>"))
			Expect(w.Body.String()).
				To(And(ContainSubstring("&lt;b&gt;%s"), ContainSubstring("&lt;b&gt;%d"),
					ContainSubstring("&lt;b&gt;%x"),
					ContainSubstring("&lt;b&gt;%v"), ContainSubstring("100% of &lt;b&gt;%d")))
		}
	})

	It("separates sentences by a space, but not in Japanese", func() {
		read := func(tag language.Tag) string {
			w := httptest.NewRecorder()
			page := crowded()
			page.SelfRegistered = true
			Expect(Edition{drawn(Appearance{}), tag}.WriteConsent(w, http.StatusOK, page)).To(Succeed())
			return regexp.MustCompile(`</?(strong|a|bdi|time)\b[^>]*>`).ReplaceAllString(w.Body.String(), "")
		}
		Expect(read(language.Japanese)).NotTo(MatchRegexp(`。 +[^ <]`))
		Expect(read(language.German)).NotTo(MatchRegexp(`[a-z]\.(Nur|Mehr|Jede|Geben)`))
	})
})
