package response

import (
	"context"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("The context of an answer", Label("G16"), func() {
	var (
		request context.Context
		hangUp  context.CancelFunc
		answer  *lazyCancelContext
		cause   = errors.New("the grant has ended")
	)
	BeforeEach(func() {
		request, hangUp = context.WithCancel(context.WithValue(context.Background(), identityKey{}, "somebody"))
		DeferCleanup(hangUp)
		answer = &lazyCancelContext{Context: request}
	})

	It("has what the request has, and makes nothing of its own for whoever only looks", func() {
		Expect(answer.Err()).To(Succeed())
		Expect(answer.Value(identityKey{})).To(Equal("somebody"))
		Expect(answer.made.Load()).To(BeNil())
	})

	It("ends with its cause, whether somebody waits already or asks later", func() {
		before, cancel := context.WithCancel(answer)
		defer cancel()
		answer.end(cause)
		Expect(before.Done()).To(BeClosed())
		Expect(context.Cause(before)).To(MatchError(cause))
		Expect(answer.Done()).To(BeClosed())
		Expect(answer.Err()).To(MatchError(context.Canceled))
		Expect(context.Cause(answer)).To(MatchError(cause))
		Expect(request.Err()).To(Succeed())
	})

	It("ends before anybody has asked", func() {
		answer.end(cause)
		Expect(answer.Err()).To(MatchError(context.Canceled))
		Expect(context.Cause(answer)).To(MatchError(cause))
		Expect(answer.Value(identityKey{})).To(Equal("somebody"))
	})

	It("ends when the client hangs up", func() {
		waiting, cancel := context.WithCancel(answer)
		defer cancel()
		hangUp()
		Expect(waiting.Done()).To(BeClosed())
		Expect(answer.Err()).To(MatchError(context.Canceled))
		Expect(context.Cause(answer)).To(MatchError(context.Canceled))
	})

	It("lets go of those who wait when the answer is done", func() {
		waiting := answer.Done()
		answer.release()
		Expect(waiting).To(BeClosed())
	})

	It("keeps nothing when the answer is done, for a session may keep it, and still says whose it is", func() {
		answer.who = &answer.known
		answer.known.Caller = oauth.Caller{Grant: "A"}
		answer.release()
		Expect(answer.made.Load()).To(BeIdenticalTo(over))
		Expect(answer.Done()).To(BeClosed())
		Expect(answer.Err()).To(MatchError(context.Canceled))
		Expect(request.Err()).To(Succeed())
		Expect(answer.Value(identityKey{})).To(BeIdenticalTo(answer.who))
		answer.who = nil
		Expect(answer.Value(identityKey{})).To(Equal("somebody"))
	})

	It("is one for all who ask at once", func() {
		for range 2000 {
			answer := &lazyCancelContext{Context: request}
			start, asked := make(chan struct{}), make(chan (<-chan struct{}), 8)
			for range cap(asked) {
				go func() {
					<-start
					asked <- answer.Done()
				}()
			}
			close(start)
			first := <-asked
			for range cap(asked) - 1 {
				Expect(<-asked).To(Equal(first))
			}
			answer.release()
		}
	})
})
