package oauth

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// refreshes is a grant with the refresh tokens that were issued so far, the first one first.
type refreshes struct {
	*family
	issued []*Tokens
	now    time.Time
}

func refreshedGrant(settings *Settings) *refreshes {
	GinkgoHelper()
	f := redeemed(settings)
	return &refreshes{family: f, issued: []*Tokens{{Access: f.access, Refresh: f.refresh}}, now: noon}
}

// present presents the refresh token of a generation, counted from 0, after a time, as the
// application does: on a copy.
func (r *refreshes) present(generation int, after time.Duration) (*Tokens, error) {
	r.now = r.now.Add(after)
	changed := r.grant.Copy()
	tokens, err := changed.Refresh(r.refreshment(r.issued[generation].Refresh), r.settings, r.now)
	if err != nil {
		return nil, err
	}
	r.grant = RestoreGrant(changed.Snapshot())
	if tokens.Refresh.number > uint32(len(r.issued)) {
		r.issued = append(r.issued, tokens)
	}
	return tokens, nil
}

// rotate presents the newest refresh token.
func (r *refreshes) rotate(after time.Duration) {
	GinkgoHelper()
	_, err := r.present(len(r.issued)-1, after)
	Expect(err).NotTo(HaveOccurred())
}

// call uses an access token.
func (r *refreshes) call(token Secret) {
	GinkgoHelper()
	_, err := r.grant.Admits(token, r.settings.Resources[0].Resource, r.now)
	Expect(err).NotTo(HaveOccurred())
	use, isNew := r.grant.NewUse(token, r.now)
	Expect(isNew).To(BeTrue())
	r.grant.RecordUse(use)
}

func (r *refreshes) newest() *Tokens { return r.issued[len(r.issued)-1] }

var _ = Describe("Presenting a replaced refresh token", Label("D27", "J9"), func() {
	const used = true
	var r *refreshes
	BeforeEach(func() { r = refreshedGrant(settingsOf()) })
	expectNewest := func(tokens *Tokens, err error) {
		GinkgoHelper()
		Expect(err).NotTo(HaveOccurred())
		Expect(tokens.Refresh.Reveal()).To(Equal(r.newest().Refresh.Reveal()))
		Expect(tokens.Access.Reveal()).To(Equal(r.newest().Access.Reveal()))
	}
	expectReuse := func(err error) {
		GinkgoHelper()
		Expect(err).To(And(Refused(InvalidGrant), MatchError(ErrReused)))
	}

	It("returns the newest tokens to racers of up to four generations, without growing", Label("I15"), func() {
		for range 4 {
			r.rotate(time.Second)
		}
		size := len(fmt.Sprint(r.grant.Snapshot()))
		for generation := range 4 {
			for range 16 {
				expectNewest(r.present(generation, time.Second))
			}
		}
		Expect(fmt.Sprint(r.grant.Snapshot())).To(HaveLen(size))
		Expect(r.grant.Admits(r.newest().Access, r.settings.Resources[0].Resource, r.now)).Error().NotTo(HaveOccurred())
	})

	It("is reuse for the fifth generation", func() {
		for range 5 {
			r.rotate(time.Second)
		}
		_, err := r.present(0, time.Second)
		expectReuse(err)
		Expect(err).To(MatchError(
			ContainSubstring("an old copy of the refresh token, 5 refreshes later; refresh-grace is 5m0s")))
	})

	It("walks to the newest tokens after the clock went back", Label("I23"), func() {
		r.rotate(0)
		r.rotate(-3 * time.Minute)
		r.rotate(5*time.Minute + 30*time.Second)
		_, err := r.present(0, time.Second)
		Expect(err).NotTo(MatchError(ErrHostTokenLost))
		expectNewest(r.present(2, time.Second))
	})

	It("does not end the access tokens of the owner by asking for other scopes", Label("G7"), func() {
		r.rotate(time.Second)
		r.call(r.newest().Access)
		for i := range 2 * maxAccessTokens {
			by := r.refreshment(r.issued[0].Refresh)
			by.Scope = []string{"mcp", "mcp offline_access"}[i%2]
			tokens, err := r.grant.Refresh(by, r.settings, r.now)
			Expect(err).NotTo(HaveOccurred())
			Expect(r.grant.Admits(tokens.Access, r.settings.Resources[0].Resource, r.now)).Error().NotTo(HaveOccurred())
		}
		for _, token := range []Secret{r.access, r.newest().Access} {
			Expect(r.grant.Admits(token, r.settings.Resources[0].Resource, r.now)).Error().NotTo(HaveOccurred())
		}
	})

	It("says what is left of the access token", func() {
		r.rotate(time.Second)
		r.call(r.newest().Access)
		tokens, err := r.present(0, 4*time.Minute)
		expectNewest(tokens, err)
		Expect(tokens.Lifetime).To(Equal(56 * time.Minute))
	})

	DescribeTable("that one process of a client comes for late, serves the others", func(inUse func(*Tokens)) {
		r.rotate(time.Second)
		tokens, err := r.present(0, time.Hour)
		Expect(err).NotTo(HaveOccurred())
		inUse(tokens)
		_, err = r.present(0, 5*time.Minute-time.Millisecond)
		Expect(err).NotTo(HaveOccurred())
		_, err = r.present(0, time.Millisecond)
		expectReuse(err)
	},
		Entry("while it works with the tokens", func(tokens *Tokens) { r.call(tokens.Access) }),
		Entry("after it has refreshed again", func(*Tokens) { r.rotate(0) }),
	)

	It("replaces an expired access token for all that come late", func() {
		r.rotate(time.Second)
		tokens, err := r.present(0, time.Hour)
		Expect(err).NotTo(HaveOccurred())
		r.issued[1] = tokens
		expectNewest(r.present(0, time.Minute))
		Expect(tokens.Lifetime).To(Equal(time.Hour))
	})

	DescribeTable("while its successor", func(inUse func(), after time.Duration, answered bool) {
		r.rotate(time.Second)
		inUse()
		tokens, err := r.present(0, after)
		if answered {
			expectNewest(tokens, err)
			return
		}
		expectReuse(err)
		Expect(err).To(MatchError(ContainSubstring(
			fmt.Sprintf("an old copy of the refresh token, %s after it was replaced; refresh-grace is 5m0s",
				after.Truncate(time.Minute)))))
	},
		Entry("is in use gets it within the window", func() { r.call(r.newest().Access) }, 4*time.Minute, true),
		Entry("is in use gets it up to the end of the window", func() {
			r.call(r.newest().Access)
		}, 5*time.Minute-time.Millisecond, true),
		Entry("is in use is reuse at the end of the window", Label("I20"), func() {
			r.call(r.newest().Access)
		}, 5*time.Minute, false),
		Entry("is in use is reuse after the window", func() { r.call(r.newest().Access) }, 6*time.Minute, false),
		Entry("was used by a refresh is reuse after the window", func() {
			r.rotate(time.Second)
		}, 6*time.Minute, false),
		Entry("is unused gets it after the window, while only earlier access tokens are in use",
			func() { r.call(r.issued[0].Access) }, 6*time.Minute, true),
		Entry("is in use gets it when the clock went back", Label("I23"), func() {
			r.call(r.newest().Access)
		}, -time.Second, true),
		Entry("is in use is reuse when the clock went back by more than the window", Label("I23"),
			func() { r.call(r.newest().Access) }, -5*time.Minute, false),
	)

	DescribeTable("finds a thief", func(steps func(owner, thief func(used bool) error) (reuse error)) {
		copied := 0 // the generation that the thief has copied
		held := map[string]int{}
		party := func(name string) func(bool) error {
			held[name] = copied
			return func(use bool) error {
				tokens, err := r.present(held[name], 10*time.Minute)
				if err != nil {
					return err
				}
				held[name] = int(tokens.Refresh.number) - 1
				if use {
					r.call(tokens.Access)
				}
				return nil
			}
		}
		expectReuse(steps(party("owner"), party("thief")))
	},
		Entry("when the owner refreshes and works, and then the thief comes",
			func(owner, thief func(bool) error) error {
				Expect(owner(used)).To(Succeed())
				return thief(used)
			}),
		Entry("when the thief refreshes and works, and then the owner comes",
			func(owner, thief func(bool) error) error {
				Expect(thief(used)).To(Succeed())
				return owner(used)
			}),
		Entry("when the owner refreshes twice without working, and then the thief comes",
			func(owner, thief func(bool) error) error {
				Expect(owner(!used)).To(Succeed())
				Expect(owner(!used)).To(Succeed())
				return thief(used)
			}),
		Entry("when both hold the same newest token: at the next refresh of the second",
			func(owner, thief func(bool) error) error {
				Expect(owner(!used)).To(Succeed())
				Expect(thief(used)).To(Succeed(), "the answer may have been lost, so the thief gets the same tokens")
				Expect(owner(used)).To(Succeed())
				return thief(used)
			}),
		Entry("when the thief comes first and both hold the same newest token",
			func(owner, thief func(bool) error) error {
				Expect(thief(!used)).To(Succeed())
				Expect(owner(used)).To(Succeed())
				Expect(thief(used)).To(Succeed())
				return owner(used)
			}),
	)

	It("never ends the grant of a client that authenticates", func() {
		r.grant.client.AuthMethod = PrivateKeyJWT
		r.rotate(time.Second)
		r.call(r.newest().Access)
		_, err := r.present(0, time.Hour)
		Expect(err).To(And(Refused(InvalidGrant), Not(MatchError(ErrReused))))
		r.rotate(time.Second)
	})

	It("is unknown, and ends nothing, when it is newer than the database", func() {
		before := r.grant.Copy()
		r.rotate(time.Second)
		lost := r.newest().Refresh
		r.grant = before // restored from a backup
		err := r.grant.MayRefresh(r.refreshment(lost), r.settings, r.now)
		Expect(err).To(And(Refused(InvalidGrant), Not(MatchError(ErrReused))))
		Expect(r.grant.Revoke(lost, clientURL, r.now)).To(BeFalse())
	})

	It("is reuse at once without a window", Label("D27"), func() {
		r = refreshedGrant(settingsOf(func(c *Config) { c.RefreshGrace = -1 }))
		r.rotate(time.Second)
		_, err := r.present(0, time.Second)
		expectReuse(err)
		Expect(r.grant.Snapshot().Rotations).To(BeNil())
	})
})

var _ = Describe("The size of a grant", Label("H6"), func() {
	It("is bounded, whatever the number of its refreshes", func() {
		r := refreshedGrant(settingsOf(func(c *Config) { c.RecheckEvery = time.Minute }))
		for range 1000 {
			r.rotate(time.Second)
		}
		snapshot := r.grant.Snapshot()
		Expect(snapshot.Rotations).To(HaveLen(4))
		Expect(snapshot.AccessTokens).To(HaveLen(8))
		size := 0
		for _, kept := range snapshot.Rotations {
			size += len(kept.Digest) + len(kept.Box) + 16
		}
		for _, token := range snapshot.AccessTokens {
			size += len(token.Digest) + len(token.Wrap) + 20
		}
		Expect(size).To(BeNumerically("<", 2048))
	})

	It("has eight access tokens at most: one more ends the oldest", Label("G7"), func() {
		r := refreshedGrant(settingsOf())
		for range 7 {
			r.rotate(time.Second)
		}
		r.call(r.issued[0].Access)
		r.rotate(time.Second)
		_, err := r.grant.Admits(r.issued[0].Access, r.settings.Resources[0].Resource, r.now)
		Expect(err).To(Refused(InvalidToken))
		r.call(r.issued[1].Access)
	})

	It("ends revoked ones before valid ones", Label("G7"), func() {
		r := refreshedGrant(settingsOf())
		for range 7 {
			r.rotate(time.Second)
		}
		for _, tokens := range r.issued[1:] {
			r.grant.Revoke(tokens.Access, clientURL, r.now)
		}
		r.rotate(time.Second)
		r.call(r.issued[0].Access)
		r.call(r.newest().Access)
	})

	It("shrinks when a refresh comes after the others have expired", func() {
		r := refreshedGrant(settingsOf())
		for range 8 {
			r.rotate(time.Second)
		}
		r.rotate(time.Hour)
		Expect(r.grant.Snapshot().Rotations).To(HaveLen(1))
		Expect(r.grant.Snapshot().AccessTokens).To(HaveLen(1))
	})
})

var _ = Describe("Recording the use of a grant", Label("G15"), func() {
	It("has the precision of a minute, and notices each new access token", func() {
		r := refreshedGrant(settingsOf())
		use, isNew := r.grant.NewUse(r.access, noon)
		Expect(isNew).To(BeTrue())
		Expect(use).To(Equal(Use{At: noon, Access: 1}))
		r.grant.RecordUse(use)
		_, isNew = r.grant.NewUse(r.access, noon.Add(time.Minute-time.Millisecond))
		Expect(isNew).To(BeFalse())
		use, isNew = r.grant.NewUse(r.access, noon.Add(time.Minute))
		Expect(isNew).To(BeTrue())
		Expect(use).To(Equal(Use{At: noon.Add(time.Minute), Access: 1}))
		r.rotate(time.Second)
		use, isNew = r.grant.NewUse(r.newest().Access, noon.Add(time.Second))
		Expect(isNew).To(BeTrue())
		Expect(use.Access).To(BeEquivalentTo(2))
	})

	It("keeps the later of two, in any order", func() {
		earlier, later := Use{At: noon, Access: 7}, Use{At: noon.Add(time.Minute), Access: 3}
		Expect(earlier.Latest(later)).To(Equal(Use{At: noon.Add(time.Minute), Access: 7}))
		Expect(later.Latest(earlier)).To(Equal(Use{At: noon.Add(time.Minute), Access: 7}))
	})
})
