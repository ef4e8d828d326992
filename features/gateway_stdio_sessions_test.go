package features_test

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
)

// waitForever calls a tool that does not answer, and returns the stream of its response.
func waitForever(ctx context.Context, talk *Conversation) *Stream {
	GinkgoHelper()
	call := talk.message(ctx, "tools/call", params{"name": "wait", "arguments": params{}})
	if talk.Revision == httpSSE {
		Expect(Send(call).StatusCode).To(Equal(http.StatusAccepted))
		return talk.stream
	}
	return Follow(call)
}

var _ = Describe("A session with a program over stdio", Label("gateway", "U24", "U25"), func() {
	It("ends as idle only without an open call and without a client that listens", func(ctx SpecContext) {
		world := openProgram(ctx, nil, programLimits(func(l *bootstrap.ProgramLimits) { l.IdleTimeout = time.Second }))
		access := connectedTo(ctx, world)
		var pids []int
		begin := func(revision string) *Conversation {
			talk := world.Converse(ctx, revision, access)
			pids = append(pids, pidOf(ctx, talk))
			return talk
		}
		waitForever(ctx, begin(httpSSE))
		begin(httpSSE)
		broken, hangUp := context.WithCancel(ctx)
		waitForever(broken, begin(sessions))
		hangUp()
		begin(sessions).Listen(ctx)
		family := familyOf(ctx, begin(sessions))
		Eventually(survivors(family)).WithTimeout(patience).Should(BeEmpty())
		Expect(survivors(pids)()).To(Equal(pids[:4]))
		Expect(world.Log.String()).To(ContainSubstring("the session was idle for too long"))
	})

	DescribeTable("with an open call ends for a newer session only after those without one", Label("G20"), func(ctx SpecContext, revision string) {
		world := openProgram(ctx, nil, programLimits(func(l *bootstrap.ProgramLimits) { l.MaxProcessesPerPerson = 2 }))
		access := connectedTo(ctx, world)
		busy := world.Converse(ctx, revision, access)
		pids := []int{pidOf(ctx, busy)}
		broken, hangUp := context.WithCancel(ctx)
		defer hangUp()
		if waitForever(broken, busy); revision == sessions {
			hangUp()
		}
		idle := world.Converse(ctx, sessions, access)
		pids = append(pids, pidOf(ctx, idle))
		world.Converse(ctx, sessions, access)
		Eventually(survivors(pids)).WithTimeout(patience).Should(Equal(pids[:1]))
		Expect(world.Log.String()).To(ContainSubstring("a newer session has replaced it, because the limit is 2 sessions for each person and 200 for all"))
	},
		Entry("over HTTP+SSE", httpSSE),
		Entry("whose client has gone", sessions),
	)
})
