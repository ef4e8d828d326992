package persistence

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

func itListsClients(open func(ctx context.Context) *Store) {
	It("lists the clients with active grants, those with most first", Label("C54"), func(ctx SpecContext) {
		store, grants := open(ctx), 0
		add := func(number int, client string, idleEnd time.Time, change func(*oauth.GrantSnapshot)) {
			for range number {
				grants++
				snapshot := oauth.GrantSnapshot{
					ID: fmt.Sprint(grants), ClientID: client, State: "active", CreatedAt: then, IdleEnd: idleEnd, AbsoluteEnd: absoluteEnd,
				}
				change(&snapshot)
				Expect(keep(ctx, store, oauth.RestoreGrant(snapshot))).To(Succeed())
			}
		}
		alive := func(*oauth.GrantSnapshot) {}
		ended := func(s *oauth.GrantSnapshot) { s.State, s.EndedAt = "ended", then }
		const one, two, three, gone, idle = "https://one.example/c", "https://two.example/c", "https://three.example/c", "https://gone.example/c", "https://idle.example/c"
		later := then.Add(time.Hour)
		add(1, one, later, alive)
		add(3, one, later, ended)
		add(2, two, later, alive)
		add(3, two, then, alive)
		add(2, three, later, alive)
		add(4, gone, later, ended)
		add(4, idle, then, alive)

		clients := func(limit int) (ids []string) {
			GinkgoHelper()
			found, err := store.Clients(ctx, then, limit)
			Expect(err).NotTo(HaveOccurred())
			for _, id := range found {
				ids = append(ids, id.String())
			}
			return ids
		}
		Expect(clients(10)).To(Equal([]string{three, two, one}))
		Expect(clients(2)).To(Equal([]string{three, two}))
	})
}

var _ = Describe("Listing the clients in use from a SQLite file", func() {
	itListsClients(func(context.Context) *Store { return openFresh() })

	It("reports a database that cannot answer", Label("C54", "N14"), func(ctx SpecContext) {
		store := openFresh()
		Expect(store.Close()).To(Succeed())
		Expect(store.Clients(ctx, then, 1)).Error().To(MatchError(oauth.ErrUnavailable))
	})
})
