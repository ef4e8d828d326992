package features_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"regexp"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
)

// Parts of a token behind its prefix.
const (
	grantPart   = 16 // the id of the grant
	entropyFrom = 20
	entropyTo   = 52
	tokenSize   = 60
)

func contentOf(token string) []byte {
	GinkgoHelper()
	content := must(base64.RawURLEncoding.DecodeString(token[len(oauth.AccessTokenSecret):]))
	Expect(content).To(HaveLen(tokenSize))
	return content
}

// madeUp returns the text of a token that begins with these bytes and goes on with random ones.
func madeUp(kind oauth.SecretKind, begin []byte) string {
	content := make([]byte, tokenSize)
	_, _ = rand.Read(content) // never fails
	copy(content, begin)
	return string(kind) + base64.RawURLEncoding.EncodeToString(content)
}

// keys returns what a thief of the server secret derives from it.
func (w *World) keys() seal.KeyRing {
	GinkgoHelper()
	return seal.NewKeyRing(seal.FixedSecrets{[]byte(serverSecret(w))})
}

// forged returns a token of the grant whose tag is right and whose random part is not.
func forged(kind oauth.SecretKind, grant string, number uint32, keys seal.KeyRing) oauth.Secret {
	GinkgoHelper()
	return must(oauth.NewSecret(kind, grant, number, must(oauth.NewEntropy(rand.Reader)), keys))
}

// present sends a token to every endpoint that takes one, and checks that nothing comes of it.
func (c *Client) present(ctx context.Context, token string) {
	GinkgoHelper()
	Expect(c.World.Call(ctx, token)).To(BeChallenged(c.World, "invalid_token"))
	Expect(c.Token(ctx, c.Refresh(token))).To(BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
	Expect(c.Token(ctx, c.Exchange(token))).To(BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
	Expect(c.Revoke(ctx, token).StatusCode).To(Equal(http.StatusOK))
}

// expectAlive checks that the tokens work, and returns those of the next refresh.
func (c *Client) expectAlive(ctx context.Context, tokens Tokens) Tokens {
	GinkgoHelper()
	Expect(c.World.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
	next := c.Token(ctx, c.Refresh(tokens.Refresh))
	Expect(next.StatusCode).To(Equal(http.StatusOK), next.Text)
	return next.Tokens()
}

// expectDead checks that none of the tokens works.
func (c *Client) expectDead(ctx context.Context, all ...Tokens) {
	GinkgoHelper()
	for _, tokens := range all {
		Expect(c.World.Call(ctx, tokens.Access)).To(BeChallenged(c.World, "invalid_token"))
		Expect(c.Token(ctx, c.Refresh(tokens.Refresh))).To(BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
	}
}

// blobs returns the binary columns of the grants.
func (w *World) blobs(ctx context.Context) (blobs [][]byte) {
	GinkgoHelper()
	for _, row := range w.Rows(ctx)["grants"] {
		for _, found := range regexp.MustCompile(`X'([0-9A-F]+)'`).FindAllStringSubmatch(row, -1) {
			blobs = append(blobs, must(hex.DecodeString(found[1])))
		}
		for _, found := range regexp.MustCompile(`"([+/\w]+)=*"`).FindAllStringSubmatch(row, -1) { // in JSON
			if blob, err := base64.RawStdEncoding.DecodeString(found[1]); err == nil {
				blobs = append(blobs, blob)
			}
		}
	}
	return blobs
}

// anyOpen reports whether a part of the blobs is a box that the sealers open.
func anyOpen(blobs [][]byte, sealers seal.Sealers) bool {
	for _, blob := range blobs {
		for from := range blob {
			for to := from + 1; to <= len(blob); to++ {
				if _, err := sealers.Open(blob[from:to]); err == nil {
					return true
				}
			}
		}
	}
	return false
}

var _ = Describe("An attacker", func() {
	world := EachWorld()
	client := world.EachClient()
	var tokens Tokens
	var grant string
	BeforeEach(func(ctx SpecContext) {
		tokens = client.Connect(ctx)
		grant = hex.EncodeToString(contentOf(tokens.Access)[:grantPart])
	})
	everyKind := []oauth.SecretKind{oauth.CodeSecret, oauth.AccessTokenSecret, oauth.RefreshTokenSecret}

	DescribeTable("achieves nothing, and leaves no row behind,", Label("D31", "H2"),
		func(ctx SpecContext, known func() []byte) {
			rows := world.Rows(ctx)
			for _, kind := range everyKind {
				client.present(ctx, madeUp(kind, known()))
			}
			Expect(world.Rows(ctx)).To(Equal(rows))
			client.expectAlive(ctx, tokens)
		},
		Entry("with nothing", func() []byte { return nil }),
		Entry("with the id of a grant", func() []byte { return contentOf(tokens.Access)[:grantPart] }),
		Entry("with the id of a grant and the number of its newest tokens",
			func() []byte { return contentOf(tokens.Access)[:entropyFrom] }),
		Entry("with the id of a grant and an earlier number",
			func() []byte { return append(contentOf(tokens.Access)[:grantPart], 0, 0, 0, 0) }),
		Entry("with all of a token but its tag", func() []byte { return contentOf(tokens.Refresh)[:entropyTo] }),
	)

	It("finds no random part of a code or token in the database", Label("H2", "H3"), func(ctx SpecContext) {
		code := client.Authorize(ctx)
		next := client.expectAlive(ctx, tokens)
		for place, content := range filesOf(world.Dir) {
			for _, secret := range []string{code, tokens.Access, tokens.Refresh, next.Access, next.Refresh} {
				part := contentOf(secret)[entropyFrom:entropyTo]
				Expect(bytes.Contains(content, part)).To(BeFalse(), "%s… found in %s", secret[:4], place)
				for _, blob := range world.blobs(ctx) {
					Expect(bytes.Contains(blob, part)).To(BeFalse(), "%s… found in base64", secret[:4])
				}
			}
		}
	})

	Context("with the database and the server secret", Label("H2"), func() {
		var next Tokens
		BeforeEach(func(ctx SpecContext) {
			refreshed := client.Token(ctx, client.Refresh(tokens.Refresh))
			Expect(refreshed.StatusCode).To(Equal(http.StatusOK), refreshed.Text)
			next = refreshed.Tokens()
			world.Clock.Advance(time.Minute) // the code would now be replayed
		})

		It("makes no token that works", Label("G7", "D22"), func(ctx SpecContext) {
			rows, keys := world.Rows(ctx), world.keys()
			for number := range uint32(4) {
				for _, kind := range everyKind {
					if kind == oauth.RefreshTokenSecret && number < 2 { // pretends a reuse
						continue
					}
					client.present(ctx, forged(kind, grant, number, keys).Reveal())
				}
			}
			Expect(world.Rows(ctx)).To(Equal(rows))
			client.expectAlive(ctx, next)
		})

		It("opens neither a successor nor the host token", Label("J2", "J3"), func(ctx SpecContext) {
			blobs, keys := world.blobs(ctx), world.keys()
			opens := func(kind string, holder seal.Confidential) bool {
				GinkgoHelper()
				return anyOpen(blobs, must(keys.HolderSealers(holder, seal.Binding{Kind: kind, Owner: grant})))
			}
			owned := func(token string) oauth.Secret {
				GinkgoHelper()
				return must(oauth.ParseSecret(oauth.RefreshTokenSecret, token, keys))
			}
			const successor, wrap = "successor", "wrap/ppr_"
			Expect(opens(successor, owned(tokens.Refresh))).To(BeTrue(), "as the owner does")
			Expect(opens(wrap, owned(next.Refresh))).To(BeTrue(), "as the owner does")
			for _, kind := range []string{successor, wrap, "host"} {
				for number := range uint32(4) {
					Expect(opens(kind, forged(oauth.RefreshTokenSecret, grant, number, keys))).To(BeFalse(), kind)
				}
				Expect(anyOpen(blobs, must(keys.Sealers(seal.Binding{Kind: kind, Owner: grant})))).To(BeFalse(), kind)
			}
		})

		It("ends the grant by a pretended reuse, and gets nothing", Label("D27", "I12"), func(ctx SpecContext) {
			replaced := forged(oauth.RefreshTokenSecret, grant, 1, world.keys())
			Expect(client.Token(ctx, client.Refresh(replaced.Reveal()))).To(
				BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
			client.expectDead(ctx, tokens, next)
		})
	})

	It("ends the grant with a refresh token of last week, and gets nothing", Label("D27"), func(ctx SpecContext) {
		stolen, newest := tokens.Refresh, tokens
		for range 7 { // more often than a grant remembers
			world.Clock.Advance(24 * time.Hour)
			newest = client.Token(ctx, client.Refresh(newest.Refresh)).Tokens()
			Expect(world.Call(ctx, newest.Access).StatusCode).To(Equal(http.StatusOK))
		}
		Expect(client.Token(ctx, client.Refresh(stolen))).To(BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
		client.expectDead(ctx, newest)
	})

	// The owner holds the newest tokens, or still the replaced ones if the answer was lost.
	DescribeTable("gets the newest tokens with a replaced refresh token, until the owner refreshes,",
		Label("D27", "I12", "I19"),
		func(ctx SpecContext, late time.Duration, use func(ctx context.Context, next Tokens) (kept Tokens)) {
			next := client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
			kept := use(ctx, next)
			world.Clock.Advance(late)
			stolen := client.Token(ctx, client.Refresh(tokens.Refresh))
			Expect(stolen.StatusCode).To(Equal(http.StatusOK), stolen.Text)
			Expect(stolen.Tokens().Refresh).To(Equal(next.Refresh), "nothing newer than what the owner got")
			further := client.expectAlive(ctx, stolen.Tokens())
			client.expectAlive(ctx, further)

			world.Clock.Advance(5 * time.Minute)
			Expect(client.Token(ctx, client.Refresh(kept.Refresh))).To(
				BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
			client.expectDead(ctx, next, stolen.Tokens(), further)
		},
		Entry("within the grace window", 4*time.Minute, func(ctx context.Context, next Tokens) Tokens {
			Expect(world.Call(ctx, next.Access).StatusCode).To(Equal(http.StatusOK))
			return next
		}),
		Entry("a week later, when its successor was never used", 7*24*time.Hour,
			func(context.Context, Tokens) Tokens { return tokens }),
	)
})
