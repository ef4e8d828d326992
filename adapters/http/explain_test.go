package http

import (
	"errors"
	"net/http/httptest"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/http/pages"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Explaining a refusal", func() {
	It("has every text in every language", func() {
		drawn, err := pages.New("cms.example", pages.Appearance{}, oauth.Links{})
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
		for _, tongue := range []string{"de", "fr", "es", "ja"} {
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
