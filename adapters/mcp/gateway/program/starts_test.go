package program

import (
	"errors"
	"net/http"
	"net/http/httptest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Starting the program", Label("U25"), func() {
	It("is refused for a person who has started it too often", func() {
		mayStart := func(person string) bool { return person != "ada" }
		u := New(gateway.Address{}, gateway.Config{}, gateway.Options{}, mayStart)
		_, err := u.start(httptest.NewRequest(http.MethodPost, "/mcp", nil), oauth.Caller{Subject: "ada"},
			oauth.HostToken{})
		var failure *gateway.Failure
		Expect(errors.As(err, &failure)).To(BeTrue())
		Expect(err).To(MatchError(ContainSubstring("started too often for this person")))
		Expect(failure.Status).To(Equal(http.StatusServiceUnavailable))
	})
})
