package features_test

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Running replicas", Label("replicas"), func() {
	for engine := range databaseServers {
		Context("on "+engine, Ordered, ContinueOnFailure, func() {
			var fleet *Fleet
			BeforeAll(func() {
				ForFleets()
				fleet = NewFleet(BuildBinary(), engine)
			})

			DescribeTable("returns the same newest tokens for sixteen refreshes, spread over all replicas, of",
				Label("I15", "D27"), func(ctx SpecContext, generations, rounds int) {
					client := fleet.NewClient()
					tokens := client.Connect(ctx)
					for range rounds {
						held := []string{tokens.Refresh}
						for range generations - 1 {
							tokens = client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
							held = append(held, tokens.Refresh)
						}
						spread := map[int]func() Response{}
						for i := range crowd {
							at := *client
							at.World = fleet.At(i)
							form := client.Refresh(held[i%len(held)])
							spread[i] = func() Response { return at.Token(ctx, form) }
						}
						answers := together(spread)
						for _, replaced := range held {
							answers[len(answers)] = client.Token(ctx, client.Refresh(replaced))
						}
						tokens = answers[len(answers)-1].Tokens()
						newest := append(held[1:], tokens.Refresh) // the last one before the race, and after it
						for i, answer := range answers {
							Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
							Expect(newest[max(0, len(newest)-2):]).To(ContainElement(answer.Tokens().Refresh))
							Expect(fleet.callAt(ctx, i+1, answer.Tokens().Access).StatusCode).To(Equal(http.StatusOK))
							if i >= len(spread) {
								Expect(answer.Tokens().Refresh).To(Equal(tokens.Refresh))
							}
						}
					}
				},
				Entry("one token", NodeTimeout(5*time.Minute), 1, 100),
				Entry("three generations", NodeTimeout(5*time.Minute), 3, 30),
			)
		})
	}
})
