package features_test

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/engines"
)

var _ = Describe("A database server that fails", Label("engines", "long", "N14", "D30", "E10", "G11"), func() {
	for name := range databaseServers {
		Context("of "+name, func() {
			var database *engines.Server
			var world *World
			var stake *Stake
			BeforeEach(func(ctx SpecContext) {
				var err error
				database, err = engines.Own(ctx, name)
				Expect(err).NotTo(HaveOccurred())
				DeferCleanup(func() error { return database.Close() })
				world = newWorld()
				world.Database, err = database.Database(ctx)
				Expect(err).NotTo(HaveOccurred())
				world.start("127.0.0.1:0")
				DeferCleanup(func() { world.Stop() })
				stake = NewStake(ctx, world.NewClient())
			}, NodeTimeout(5*time.Minute))
			expectOutage := func(ctx SpecContext) {
				GinkgoHelper()
				answers := stake.Try(ctx)
				Expect(answers).To(BeAnOutage())
				Expect(answers).To(HaveKeyWithValue("call", BeUnchecked()))
			}

			It("by a restart loses nothing, and requests get 503 meanwhile", func(ctx SpecContext) {
				Expect(database.Stop()).To(Succeed())
				expectOutage(ctx)
				Expect(database.Start(ctx)).To(Succeed())
				stake.ExpectUntouched(ctx)
			}, NodeTimeout(5*time.Minute))

			// The server may carry out what it was asked before it was resumed, although the
			// request got 503.
			It("by a pause loses no token, and requests get 503 meanwhile", Label("I19"), func(ctx SpecContext) {
				Expect(database.Pause()).To(Succeed())
				DeferCleanup(func() error { return database.Resume() })
				expectOutage(ctx)
				Expect(database.Resume()).To(Succeed())

				Expect(world.Call(ctx, stake.Tokens.Access).StatusCode).To(Equal(http.StatusOK))
				next := stake.Token(ctx, stake.Refresh(stake.Tokens.Refresh))
				Expect(next.StatusCode).To(Equal(http.StatusOK), next.Text)
				Expect(world.Call(ctx, next.Tokens().Access).StatusCode).To(Equal(http.StatusOK))
				Expect(stake.Token(ctx, stake.Exchange(stake.Code))).To(BeGrantedOrRefused())
				Expect(stake.Revoke(ctx, stake.Leave.Refresh).StatusCode).To(Equal(http.StatusOK))
				Expect(world.Call(ctx, stake.Leave.Access)).To(BeChallenged(world, "invalid_token"))
				Expect(world.Call(ctx, stake.Connect(ctx).Access).StatusCode).To(Equal(http.StatusOK))
			}, NodeTimeout(5*time.Minute))
		})
	}
})
