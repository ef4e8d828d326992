package http

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/http/pages"
	"github.com/pasteport/pasteport/domain/oauth"
)

// locales returns the files with the translations of the pages.
func locales() []string {
	GinkgoHelper()
	files, err := filepath.Glob("pages/locales/*.json")
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty())
	return files
}

// textsIn returns the English texts that a file translates.
func textsIn(file string) []string {
	GinkgoHelper()
	content, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	var translated map[string]string
	Expect(json.Unmarshal(content, &translated)).To(Succeed(), file)
	return slices.Sorted(maps.Keys(translated))
}

var _ = Describe("Translating texts", func() {
	It("covers the same texts in every language", func() {
		first := textsIn(locales()[0])
		for _, file := range locales() {
			Expect(textsIn(file)).To(Equal(first), file)
		}
	})
})

var _ = Describe("Explaining a refusal", func() {
	It("has every text in every language", func() {
		drawn, err := pages.New("cms.example", pages.Appearance{}, nil)
		Expect(err).NotTo(HaveOccurred())
		reasons := []explanation{explain(errors.New("a bug"), outcome{}),
			explain(oauth.Refuse(oauth.InvalidRequest, "A5", "x"), outcome{})}
		reasons = append(reasons, explainConnections(outcome{status: 400}), explainConnections(outcome{status: 503}))
		for _, why := range explanations {
			reasons = append(reasons, why)
		}
		for kind := range statuses {
			if sentence, again := retryMessage(oauth.Refuse(kind, "B8", "x"), false); again {
				reasons = append(reasons, explanation{title: sentence})
			}
		}
		for _, file := range locales() {
			tongue := strings.TrimSuffix(filepath.Base(file), ".json")
			for _, why := range reasons {
				w := httptest.NewRecorder()
				Expect(drawn.For(tongue).
					WriteProblem(w, 400, pages.Problem{Title: why.title, Text: why.text, Advice: why.advice})).
					To(Succeed())
				for _, english := range []string{why.title, why.text, why.advice} {
					Expect(english == "" || !strings.Contains(w.Body.String(), ">"+english+"<")).
						To(BeTrue(), tongue+": "+english)
				}
			}
		}
	})
})
