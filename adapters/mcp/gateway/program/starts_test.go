package program

import (
	"errors"
	"net/http"
	"net/http/httptest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Starting the program", Label("U25"), func() {
	It("is limited in time for each person", func() {
		u := New(Options{Starts: 3})
		for range 3 {
			Expect(u.starts.allow("ada")).To(BeTrue())
		}
		_, err := u.start(httptest.NewRequest(http.MethodPost, "/mcp", nil), oauth.Caller{Subject: "ada"},
			oauth.HostToken{}, false)
		var failure *Failure
		Expect(errors.As(err, &failure)).To(BeTrue())
		Expect(err).To(MatchError(ContainSubstring("started too often for this person")))
		Expect(failure.HTTPStatus()).To(Equal(http.StatusServiceUnavailable))
		Expect(u.starts.allow("bob")).To(BeTrue())
	})
})
