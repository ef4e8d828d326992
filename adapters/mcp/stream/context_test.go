package stream

import (
	"context"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("The context of a response", Label("G16"), func() {
	var (
		request context.Context
		hangUp  context.CancelFunc
		answer  *responseContext
		cause   = errors.New("the grant has ended")
	)
	BeforeEach(func() {
		request, hangUp = context.WithCancel(context.WithValue(context.Background(), identityKey{}, "of the request"))
		DeferCleanup(hangUp)
		answer = newContext(request)
	})

	It("ends with its cause, and leaves the context of the request alone", func() {
		before, cancel := context.WithCancel(answer)
		defer cancel()
		answer.end(cause)
		Expect(before.Done()).To(BeClosed())
		Expect(context.Cause(before)).To(MatchError(cause))
		Expect(context.Cause(answer)).To(MatchError(cause))
		Expect(request.Err()).To(Succeed())
	})

	It("ends when the client hangs up", func() {
		waiting, cancel := context.WithCancel(answer)
		defer cancel()
		hangUp()
		Expect(waiting.Done()).To(BeClosed())
		Expect(context.Cause(answer)).To(MatchError(context.Canceled))
	})

	It("returns the identity of its caller as soon as it is known, also after the end", func() {
		Expect(answer.Value(identityKey{})).To(Equal("of the request"))
		answer.identity = &Identity{Sender: Sender{Caller: oauth.Caller{Grant: "A"}}}
		answer.end(nil)
		Expect(answer.Value(identityKey{})).To(BeIdenticalTo(answer.identity))
	})
})
