package features_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
)

var _ = Describe("Replacing the host token of a person's connections", Label("J19", "stores"), func() {
	const ada, adaAuthor, eve, nobody = `{"subject":"ada","roles":["editor"]}`, `{"subject":"ada","roles":["author"]}`,
		`{"subject":"eve","roles":["editor"]}`, `{"roles":["editor"]}`
	const newKey = "the-new-key-of-the-person"
	var site *KeySite
	var world *World
	BeforeEach(func() {
		site = NewKeySite(map[string]string{editorToken: ada, newKey: ada})
		world = NewWorld(site.Verify)
	})
	replace := func(ctx context.Context) (int, error) {
		return world.service.Authz.ReplaceHostToken(ctx, world.Token, newKey)
	}
	connections := func(ctx context.Context, key string) int {
		GinkgoHelper()
		return len(world.Connections(ctx, key).grants())
	}

	It("shows no account that is made of the old key", Label("J21", "H3"), func(ctx SpecContext) {
		site.Answer(world.Token, nobody)
		site.Answer(newKey, nobody)
		world.NewClient().Connect(ctx)
		Expect(replace(ctx)).To(Equal(1))
		page := world.Connections(ctx, newKey)
		Expect(page.grants()).To(HaveLen(1))
		Expect(page.Text).NotTo(ContainSubstring("<dt>Account</dt>"))
	})

	It("lets ten connections go on, idle ones and one that refreshes at that moment",
		Label("D25", "J10"), func(ctx SpecContext) {
			var clients []*Client
			var tokens []Tokens
			for range 10 {
				client := world.NewClient()
				clients, tokens = append(clients, client), append(tokens, client.Connect(ctx))
			}
			waiting := world.NewClient()
			code := waiting.Authorize(ctx)
			for i := range 7 { // the others are idle
				tokens[i] = clients[i].expectAlive(ctx, tokens[i])
			}
			site.Hold(world.Token)
			refreshing := make(chan Response)
			go func() {
				defer GinkgoRecover()
				refreshing <- clients[0].Token(ctx, clients[0].Refresh(tokens[0].Refresh))
			}()
			Eventually(site.held).WithContext(ctx).Should(BeClosed())
			Expect(replace(ctx)).To(Equal(11))
			site.Answer(world.Token, "")
			close(site.resume)
			answer := <-refreshing
			Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
			tokens[0] = answer.Tokens()

			world.Clock.Advance(time.Minute) // now every call verifies the host token
			for i, client := range clients {
				for range 2 {
					tokens[i] = client.expectAlive(ctx, tokens[i])
				}
			}
			redeemed := waiting.Token(ctx, waiting.Exchange(code))
			Expect(redeemed.StatusCode).To(Equal(http.StatusOK), redeemed.Text)
			waiting.expectAlive(ctx, redeemed.Tokens())
			Expect(world.EndGrantsOf(ctx, world.Token)).To(BeZero())
			Expect(world.Call(ctx, tokens[9].Access).StatusCode).To(Equal(http.StatusOK))
			Expect(world.EndGrantsOf(ctx, newKey)).To(Equal(11))
			for i, client := range clients {
				client.expectDead(ctx, tokens[i])
			}
			Expect(world.Log.String()).To(MatchRegexp(`host_token_replaced.*"connections":11`))
			Expect(world.Log.String()).NotTo(ContainSubstring(newKey))
		})

	It("does not end a connection whose old token is being checked during a call", Label("J8"), func(ctx SpecContext) {
		client := world.NewClient()
		tokens := client.Connect(ctx)
		world.Clock.Advance(time.Minute)
		site.Hold(world.Token)
		calling := make(chan Response)
		go func() {
			defer GinkgoRecover()
			calling <- world.Call(ctx, tokens.Access)
		}()
		Eventually(site.held).WithContext(ctx).Should(BeClosed())
		Expect(replace(ctx)).To(Equal(1))
		site.Answer(world.Token, "")
		close(site.resume)
		Expect((<-calling).StatusCode).To(Equal(http.StatusOK))
		client.expectAlive(ctx, tokens)
	})

	It("opens the new token with access tokens issued before, and after another replacement", func(ctx SpecContext) {
		client := world.NewClient()
		tokens := client.Connect(ctx, set("scope", "mcp"))
		Expect(replace(ctx)).To(Equal(1))
		site.Answer("the-third", ada)
		Expect(world.service.Authz.ReplaceHostToken(ctx, newKey, "the-third")).To(Equal(1))
		site.Answer(world.Token, "")
		site.Answer(newKey, "")
		world.Clock.Advance(time.Minute)
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
		site.Answer("the-third", "")
		world.Clock.Advance(time.Minute)
		Expect(world.Call(ctx, tokens.Access)).To(BeChallenged(world, "invalid_token"))
	})

	It("keeps a person whom the site does not name, as long as it accepts the old token, too", func(ctx SpecContext) {
		site.Answer(world.Token, nobody)
		site.Answer(newKey, nobody)
		client := world.NewClient()
		tokens := client.Connect(ctx)
		before := world.Grants(ctx)
		Expect(replace(ctx)).To(Equal(1))
		site.Answer(world.Token, "")
		world.Clock.Advance(time.Minute)
		client.expectAlive(ctx, tokens)
		Expect(world.Grants(ctx)[0].Subject).To(Equal(before[0].Subject))
		site.Answer("the-third", nobody)
		site.Answer(newKey, "")
		_, err := world.service.Authz.ReplaceHostToken(ctx, newKey, "the-third")
		Expect(err).To(HaveOccurred())
		Expect(connections(ctx, newKey)).To(Equal(1))
	})

	It("takes away at once what the new token does not permit", func(ctx SpecContext) {
		site.Answer(newKey, adaAuthor)
		tokens := world.NewClient().Connect(ctx)
		Expect(world.Call(ctx, tokens.Access).Text).To(ContainSubstring("delete_article"))
		Expect(replace(ctx)).To(Equal(1))
		Expect(world.Call(ctx, tokens.Access).Text).NotTo(ContainSubstring("delete_article"))
	})

	It("ends the connections when the site revokes the new token meanwhile", Label("J1"), func(ctx SpecContext) {
		client := world.NewClient()
		tokens := client.Connect(ctx)
		checks := 0
		site.Serve("/token", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if checks++; checks > 1 {
				w.WriteHeader(http.StatusUnauthorized)
			}
			_, _ = w.Write([]byte(ada))
		})
		_, err := replace(ctx)
		Expect(err).To(HaveOccurred())
		client.expectDead(ctx, tokens)
	})

	DescribeTable("changes nothing", func(ctx SpecContext, answer, status string) {
		site.Answer(newKey, answer)
		client := world.NewClient()
		tokens := client.Connect(ctx)
		_, err := replace(ctx)
		Expect(err).To(MatchError(ContainSubstring(status)))
		Expect(err).NotTo(MatchError(ContainSubstring(newKey)))
		Expect(connections(ctx, world.Token)).To(Equal(1))
		client.expectAlive(ctx, tokens)
	},
		Entry("when the site does not know the new token", "", "wrong_host_token"),
		Entry("when the new token belongs to somebody else", eve, "other_host_token"),
		Entry("when the site cannot tell", "no JSON", "misconfigured_verifier"),
	)

	It("ends a connection after a replay of its code from before", Label("D19", "I6"), func(ctx SpecContext) {
		client := world.NewClient()
		form := client.Exchange(client.Authorize(ctx))
		tokens := client.Token(ctx, form).Tokens()
		Expect(replace(ctx)).To(Equal(1))
		world.Clock.Advance(11 * time.Second)
		Expect(client.Token(ctx, form)).To(BeRefusedAs(400, "invalid_grant"))
		client.expectDead(ctx, tokens)
	})

	It("works after the server secret was replaced, before and after", Label("J2"), func(ctx SpecContext) {
		client := world.NewClient()
		tokens := client.Connect(ctx)
		world.RotateKeys(ctx)
		Expect(replace(ctx)).To(Equal(1))
		world.RotateKeys(ctx)
		site.Answer(world.Token, "")
		client.expectAlive(ctx, client.expectAlive(ctx, tokens))
		Expect(world.EndGrantsOf(ctx, newKey)).To(Equal(1))
	})

	It("shows nothing to a thief of the database and the server secret", Label("J11"), func(ctx SpecContext) {
		client := world.NewClient()
		tokens := client.Connect(ctx)
		grant := hex.EncodeToString(contentOf(tokens.Access)[:grantPart])
		Expect(world.thiefOpens(ctx, grant)).To(BeFalse())
		Expect(replace(ctx)).To(Equal(1))
		Expect(world.thiefOpens(ctx, grant)).To(BeFalse())
		Expect(world.thiefOpens(ctx, grant, world.dataKey(ctx, tokens.Refresh))).To(BeTrue(), "as the owner does")
		for place, content := range filesOf(world.Dir) {
			Expect(string(content)).NotTo(ContainSubstring(newKey), place)
		}
		tokens = client.expectAlive(ctx, tokens)
		Expect(world.thiefOpens(ctx, grant)).To(BeFalse())
		Expect(world.thiefOpens(ctx, grant, world.dataKey(ctx, tokens.Refresh))).To(BeTrue(), "as the owner does")
	})
})

// dataKey returns the data key of a grant, which the holder of its refresh token opens.
func (w *World) dataKey(ctx context.Context, refresh string) []byte {
	GinkgoHelper()
	holder := must(oauth.ParseSecret(oauth.RefreshTokenSecret, refresh, w.keys()))
	sealers := must(w.keys().HolderSealers(holder, seal.Binding{Kind: "wrap/ppr_", Owner: holder.Grant()}))
	for _, blob := range w.blobs(ctx) {
		if key, err := sealers.Open(blob); err == nil {
			return key
		}
	}
	Fail("the grant has no data key")
	return nil
}

// thiefOpens reports whether somebody with the database, the server secret and these keys opens the
// host token of the grant. It tries every 32 bytes of the row, too.
func (w *World) thiefOpens(ctx context.Context, grant string, known ...[]byte) bool {
	GinkgoHelper()
	keys, blobs := w.keys(), w.blobs(ctx)
	pairs := must(keys.PairSealers(seal.Binding{Kind: "host-replacement", Owner: grant}))
	secret := sha256.Sum256([]byte(serverSecret(w)))
	candidates := slices.Concat(known, [][]byte{secret[:], []byte(serverSecret(w))[:seal.KeySize]})
	for _, blob := range blobs {
		for from := range max(0, len(blob)-seal.KeySize+1) {
			candidates = append(candidates, blob[from:from+seal.KeySize])
		}
	}
	opened := func(box []byte) bool {
		for _, key := range candidates {
			sealer := must(seal.NewSealer(key, seal.Binding{Kind: "host", Owner: grant}))
			if _, err := sealer.Open(box); err == nil {
				return true
			}
			if _, err := pairs.Open(key, box); err == nil {
				return true
			}
		}
		return false
	}
	if slices.ContainsFunc(blobs, opened) {
		return true
	}
	for _, kind := range []string{"host", "host-replacement", "wrap/ppr_", "wrap/ppa_", "successor"} {
		sealers := must(keys.Sealers(seal.Binding{Kind: kind, Owner: grant}))
		holders := must(keys.HolderSealers(forged(oauth.RefreshTokenSecret, grant, 1, keys),
			seal.Binding{Kind: kind, Owner: grant}))
		if anyOpen(blobs, append(sealers, holders...)) {
			return true
		}
	}
	return false
}
