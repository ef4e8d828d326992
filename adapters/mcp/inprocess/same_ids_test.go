package inprocess

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Calls with one id in one session", Label("G18"), func() {
	const many = 50

	It("get their own answers and progress", func(ctx SpecContext) {
		s := openSite()
		proceed := s.withNumbers()
		session := s.session(ctx, alice)
		var open []follow
		for i := range many {
			open = append(open, s.follow(ctx, http.MethodPost, "/mcp", numbers(i+1), in(session, alice)...))
		}
		for _, answer := range open {
			for step := range 3 {
				Eventually(answer.lines).Should(Receive(And(ContainSubstring(fmt.Sprintf(`"progress":%d`, step)),
					ContainSubstring(`"progressToken":"p"`))))
			}
		}
		cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`
		Expect(s.send(ctx, http.MethodPost, "/mcp", cancel, in(session, alice)...).StatusCode).
			To(Equal(http.StatusAccepted))
		close(proceed)
		var all sync.WaitGroup
		for i, answer := range open {
			all.Go(func() {
				defer GinkgoRecover()
				Eventually(answer.lines).Should(Receive(And(ContainSubstring(`"id":9,`),
					ContainSubstring(`"text":"`+strings.Repeat("x", i+1)+`"`))))
			})
		}
		all.Wait()
		Expect(s.ended).NotTo(Receive(), "the cancellation could mean either call")
	})

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
