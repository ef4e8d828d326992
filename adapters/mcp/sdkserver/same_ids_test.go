package sdkserver

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Calls with one id in one session", Label("G18"), func() {
	It("are cancelled by their id while it is the only call with it", func(ctx SpecContext) {
		s := openSite()
		s.withNumbers()
		session := s.session(ctx, alice)
		answer := s.follow(ctx, http.MethodPost, "/mcp", numbers(1), in(session, alice)...)
		Eventually(answer.lines).Should(Receive(ContainSubstring(`"progress":2`)))
		cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9.0}}`
		Expect(s.send(ctx, http.MethodPost, "/mcp", cancel, in(session, alice)...).StatusCode).
			To(Equal(http.StatusAccepted))
		Eventually(s.ended).Should(Receive())
	})
})
