package features_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// identical is a call of a conversation, whose requests all have the id 7, and what
// its answer has to contain.
type identical struct {
	method string
	params params
	wanted string
}

// misanswered makes the calls in one session at the same time, and returns those that were not
// answered, or with the answer of another.
func misanswered(ctx context.Context, talk *Conversation, calls []identical) (wrong []string) {
	GinkgoHelper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, call := range calls {
		r := talk.message(ctx, call.method, call.params)
		all.Go(func() {
			answer, err := receive(r)
			answers := strings.Count(answer.Text, `"id":7`)
			progress := strings.Count(answer.Text, "progressToken")
			if call.params["_meta"] != nil {
				progress -= 3
			}
			if err != nil || answers != 1 || progress != 0 || !strings.Contains(answer.Text, call.wanted) {
				mu.Lock()
				defer mu.Unlock()
				wrong = append(wrong, fmt.Sprint(call, err, answer.StatusCode, answer.Text))
			}
		})
	}
	all.Wait()
	return wrong
}

var _ = Describe("A client that gives every request the same id", func() {
	const many = 200

	It("gets each answer of a program, with progress, cancellation and a resumed stream",
		Label("U22"), func(ctx SpecContext) {
			mark := filepath.Join(GinkgoT().TempDir(), "mark")
			to := stdioProgram()
			to.Env["MARK"] = mark
			world := NewProgramGateway(to, peopleOfPrograms(ctx))
			world.Token = adaKey
			talk := world.Converse(ctx, sessions, connectedTo(ctx, world))
			held := Follow(talk.message(ctx, "tools/call", params{"name": "wait", "arguments": params{}}))
			var calls []identical
			for i := range many {
				calls = append(calls, []identical{
					{"tools/call", params{"name": "shout", "arguments": params{"text": fmt.Sprintf("call-%d-", i)}},
						fmt.Sprintf(`"CALL-%d-"`, i)},
					{"tools/call",
						params{"name": "steps", "arguments": params{}, "_meta": params{"progressToken": i % 2}},
						fmt.Sprintf(`"progressToken":%d`, i%2)},
					{"tools/list", params{}, `"inputSchema"`},
					{"tasks/list", params{}, "tasks/list"},
					{"notifications/cancelled", params{"requestId": 7}, ""},
				}[i%5])
			}
			Expect(misanswered(ctx, talk, withoutCancellations(ctx, talk, calls))).To(BeEmpty())

			answer := talk.Post(ctx, "tools/call",
				params{"name": "steps", "arguments": params{}, "_meta": params{"progressToken": "t"}})
			Expect(strings.Count(answer.Text, `"progressToken":"t"`)).To(Equal(3))
			_, rest, _ := strings.Cut(answer.Text, "id: ")
			first, _, _ := strings.Cut(rest, "\n")
			resumed := talk.Request(ctx, http.MethodGet)
			resumed.Header.Set("Last-Event-ID", first)
			_, afterPrime, _ := strings.Cut(answer.Text, "\n\n")
			Expect(Send(resumed).Text).To(Equal(": ok\n\n" + afterPrime))

			Expect(mark).NotTo(BeAnExistingFile(), "many calls had the id, so nobody knows which one was cancelled")
			Expect(held.Body.Close()).To(Succeed())
			Eventually(func() string {
				talk.Post(ctx, "notifications/cancelled", params{"requestId": 7})
				return mark
			}).WithTimeout(patience).Should(BeAnExistingFile(), "its client has gone")
			Expect(world.Log.String()).NotTo(ContainSubstring("matches no open call"))
		})

	It("gets each answer of serve", Label("G18"), func(ctx SpecContext) {
		world := NewWorld()
		talk := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
		for range 2 { // then a cancellation of the id is ambiguous, and reaches no call
			Expect(receive(talk.message(ctx, "tools/list", params{}))).Error().NotTo(HaveOccurred())
		}
		var calls []identical
		for i := range many {
			calls = append(calls, []identical{
				{"resources/read", params{"uri": fmt.Sprintf("article://none-%d-", i)}, fmt.Sprintf("none-%d-", i)},
				{"tools/call", params{"name": fmt.Sprintf("none-%d-", i)}, fmt.Sprintf("none-%d-", i)},
				{"tools/list", params{}, `"inputSchema"`},
				{"prompts/get", params{"name": fmt.Sprintf("none-%d-", i)}, fmt.Sprintf("none-%d-", i)},
				{"notifications/cancelled", params{"requestId": 7}, ""},
			}[i%5])
		}
		Expect(misanswered(ctx, talk, withoutCancellations(ctx, talk, calls))).To(BeEmpty())
	})

	DescribeTable("gets the answers of a program that answers numbers with text:",
		Label("U22"), func(ctx SpecContext, revision string) {
			world := openProgram(ctx, []string{"text-ids"})
			talk := world.Converse(ctx, revision, connectedTo(ctx, world))
			Expect(talk.Use(ctx, "shout", params{"text": "hello"}).Text()).To(Equal("HELLO"))
			Expect(world.Log.String()).To(MatchRegexp(`an answer of a program matches no open call".*"id":"99"`))
			Expect(world.Log.String()).NotTo(ContainSubstring(adaKey))
		}, Entry(nil, batching), Entry(nil, sessions))
})

// withoutCancellations sends the cancellations among the calls, and returns the others.
func withoutCancellations(ctx context.Context, talk *Conversation, calls []identical) (others []identical) {
	GinkgoHelper()
	for _, call := range calls {
		if call.method != "notifications/cancelled" {
			others = append(others, call)
			continue
		}
		r := talk.message(ctx, call.method, call.params)
		go func() { _, _ = receive(r) }()
	}
	return others
}
