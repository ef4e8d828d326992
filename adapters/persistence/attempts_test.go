package persistence

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
)

// anAttempt has a value in every member.
func anAttempt(id string, at time.Time) attempt.Attempt {
	step := attempt.Step{
		At:      at,
		Kind:    attempt.Exchange,
		Outcome: attempt.Refused,
		Request: "r",
		Rule:    "D16",
		Reason:  "why",
	}
	return attempt.Attempt{
		ID:       id,
		Client:   "c",
		Agent:    "u",
		Address:  "n",
		Begun:    at.Add(-time.Second),
		At:       at,
		Progress: attempt.Granted,
		Last:     step,
		Steps:    []attempt.Step{{At: at.Add(-time.Second), Kind: attempt.Page}, step},
	}
}

func stranger(id string, at time.Time) attempt.Attempt {
	return attempt.Attempt{
		ID:    id,
		Begun: at,
		At:    at,
		Steps: []attempt.Step{},
	}
}

// itKeepsAttempts adds the specs of attempt.Log.
func itKeepsAttempts(open func(SpecContext) *Store) {
	save := func(ctx SpecContext, store *Store, attempts ...attempt.Attempt) {
		GinkgoHelper()
		Expect(store.ChangeAttempts(ctx, nil, func(found []attempt.Attempt) []attempt.Attempt {
			Expect(found).To(BeEmpty())
			return attempts
		})).To(Succeed())
	}
	ids := func(ctx SpecContext, store *Store, since time.Time) (found []string) {
		GinkgoHelper()
		all, err := store.Attempts(ctx, since)
		Expect(err).NotTo(HaveOccurred())
		for _, a := range all {
			found = append(found, a.ID)
		}
		return found
	}

	It("gives back every member of an attempt, the newest first, from any time on", func(ctx SpecContext) {
		store, old, young := open(ctx), anAttempt("a", then), anAttempt("b", then.Add(time.Second))
		save(ctx, store, old, young)
		Expect(store.Attempts(ctx, then)).To(Equal([]attempt.Attempt{young, old}))
		Expect(store.Attempts(ctx, young.At)).To(Equal([]attempt.Attempt{young}))
	})

	It("changes the attempts that it finds, and adds others", func(ctx SpecContext) {
		store, changed, added := open(ctx), anAttempt("a", then.Add(time.Minute)), anAttempt("b", then)
		save(ctx, store, anAttempt("a", then), anAttempt("other", then.Add(-1)))
		Expect(store.ChangeAttempts(ctx, []string{"a", "b"}, func(found []attempt.Attempt) []attempt.Attempt {
			Expect(found).To(Equal([]attempt.Attempt{anAttempt("a", then)}))
			return []attempt.Attempt{changed, added}
		})).To(Succeed())
		Expect(store.Attempts(ctx, then)).To(Equal([]attempt.Attempt{changed, added}))
		Expect(ids(ctx, store, then.Add(-time.Hour))).To(HaveLen(3))
	})

	It("forgets what is too old", func(ctx SpecContext) {
		store := open(ctx)
		save(ctx, store, anAttempt("a", then), anAttempt("b", then.Add(time.Second)), stranger("c", then))
		Expect(store.ForgetAttempts(ctx, then.Add(time.Second), 10)).To(Equal(2))
		Expect(ids(ctx, store, then)).To(Equal([]string{"b"}))
	})

	It("keeps the newest attempts with a grant and the newest without one separately, so that anonymous requests "+
		"displace no grant", func(ctx SpecContext) {
		store, attempts := open(ctx), []attempt.Attempt{}
		for i := range 5 {
			attempts = append(attempts, anAttempt(fmt.Sprint("granted", i), then.Add(time.Duration(i)*time.Second)))
		}
		for i := range 50 {
			attempts = append(attempts, stranger(fmt.Sprint("stranger", i), then.Add(time.Duration(i+5)*time.Second)))
		}
		save(ctx, store, attempts...)
		Expect(store.ForgetAttempts(ctx, time.Time{}, 4)).To(Equal(1 + 46))
		Expect(ids(ctx, store, then)).To(Equal([]string{"stranger49", "stranger48", "stranger47", "stranger46",
			"granted4", "granted3", "granted2", "granted1"}))
		Expect(store.ForgetAttempts(ctx, time.Time{}, 4)).To(BeZero())
	})

	It("is an outage while it cannot be read", func(ctx SpecContext) {
		store := open(ctx)
		Expect(store.Close()).To(Succeed())
		_, err := store.ForgetAttempts(ctx, then, 1)
		Expect(err).To(MatchError(oauth.ErrUnavailable))
		_, err = store.Attempts(ctx, then)
		Expect(err).To(MatchError(oauth.ErrUnavailable))
	})
}

var _ = Describe("A trace in a SQLite file", func() {
	itKeepsAttempts(func(SpecContext) *Store { return openFresh() })
})
