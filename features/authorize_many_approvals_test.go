package features_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/demosite"
)

// approvers are people who approve clients at the same time, each from an address of their own.
const approvers = 64

// tally is the number of responses by status.
type tally struct {
	mu      sync.Mutex
	answers map[int]int
}

func (t *tally) count(answer Response) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answers[answer.StatusCode]++
}

// approveAll lets each person connect a client again and again.
func (c *Client) approveAll(
	ctx context.Context, all int, tokenOf func(person int) string) (approved, exchanged *tally) {
	approved, exchanged = &tally{answers: map[int]int{}}, &tally{answers: map[int]int{}}
	fewAtOnce(approvers, approvers, func(person int) {
		token, address := tokenOf(person), forwarded(fmt.Sprintf("198.51.%d.1", person))
		for i := person; i < all; i += approvers {
			answer := c.Consent(ctx).Approve(ctx, token, address)
			approved.count(answer)
			if answer.StatusCode == http.StatusSeeOther {
				code := answer.Target().Query().Get("code")
				exchanged.count(c.Token(ctx, c.Exchange(code), address))
			}
		}
	})
	return approved, exchanged
}

// itApproves connects that many clients, with a token for each person or with one for all.
func itApproves(all int) {
	const connections = 200 // what an operator permits a token that these people share
	var world *World
	var client *Client
	BeforeEach(func() {
		world = NewWorld(behind("127.0.0.1/32"), atMostGrants(connections))
		client = world.NewClient()
	})

	DescribeTable("puts nobody off", func(ctx SpecContext, tokenOf func(context.Context, int) string) {
		began := time.Now()
		approved, exchanged := client.approveAll(ctx, all, func(person int) string { return tokenOf(ctx, person) })
		AddReportEntry("approvals", fmt.Sprintf("%v, exchanges %v, in %s",
			approved.answers, exchanged.answers, time.Since(began).Round(time.Second)))
		Expect(approved.answers).To(Equal(map[int]int{http.StatusSeeOther: all}))
		Expect(exchanged.answers).To(Equal(map[int]int{http.StatusOK: all}))
		Expect(strings.Count(world.Log.String(), "cannot end the connections")).To(BeZero())
	},
		Entry("with a token for each person", NodeTimeout(30*time.Minute),
			func(ctx context.Context, person int) string {
				return world.TokenFor(ctx, fmt.Sprint("person ", person), demosite.Author)
			}),
		Entry("with one token", Label("J14", "soak"), NodeTimeout(30*time.Minute),
			func(context.Context, int) string { return world.Token }),
	)
}

var _ = Describe("Approving by 64 people at once", Label("N10", "B11", "B20", "stores"), func() {
	Context("640 times", Label("long"), func() { itApproves(640) })
	Context("20,000 times", Label("soak", "flood"), func() { itApproves(20_000) })
})
