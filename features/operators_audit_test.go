package features_test

import (
	"encoding/json"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Decisions are the logged audit events with their reasons, in order.
func (w *World) Decisions() (events []string) {
	GinkgoHelper()
	for line := range strings.Lines(w.Log.String()) {
		var entry struct{ Msg, Reason string }
		Expect(json.Unmarshal([]byte(line), &entry)).To(Succeed(), line)
		if !strings.Contains(entry.Msg, " ") && entry.Msg != "request" && entry.Msg != "refused" {
			events = append(events, strings.TrimSpace(entry.Msg+" "+entry.Reason))
		}
	}
	return events
}

var _ = Describe("Audit log", Label("H8"), func() {
	It("logs each decision once, by name", func(ctx SpecContext) {
		world := NewWorld()
		client := world.NewClient()
		client.AskFor(ctx, client.Request())
		lost := world.NewClient()
		lost.ID += "x"
		lost.AskFor(ctx, lost.Request())
		client.Consent(ctx).Deny(ctx)
		page := client.Consent(ctx)
		page.Approve(ctx, "demo_wrong")
		code := page.Approve(ctx, world.Token).Target().Query().Get("code")
		client.Token(ctx, client.Exchange(code))
		client.Token(ctx, client.Exchange(code))
		world.Clock.Advance(11 * time.Second)
		client.Token(ctx, client.Exchange(code))
		tokens := client.Connect(ctx)
		next := client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
		client.Token(ctx, client.Refresh(next.Refresh))
		world.Clock.Advance(6 * time.Minute)
		client.Token(ctx, client.Refresh(tokens.Refresh))
		client.Revoke(ctx, client.Connect(ctx).Refresh)
		Expect(world.Decisions()).To(Equal([]string{
			"cimd_rejected oauth: fetch the client metadata document: the response is not a document: the " +
				"status of the response is 404", "consent_denied", "host_token_rejected",
			"grant_created", "code_redeemed", "code_retried", "grant_ended code_replayed",
			"grant_created", "code_redeemed", "refreshed", "refreshed", "grant_ended refresh_reused",
			"grant_created", "code_redeemed", "grant_ended revoked_by_client",
		}))
	})
})
