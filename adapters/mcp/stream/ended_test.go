package stream

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Closing the responses of an ended grant or token", Label("G16", "E9"), func() {
	tokenOf := func(letter string) string { return string(oauth.AccessTokenSecret) + strings.Repeat(letter, 42) + "A" }
	digestOf := func(token string) oauth.Digest { return (&Identity{Token: token}).digest() }

	DescribeTable("ends", func(long, relayed bool, ended oauth.Ended, ends bool) {
		s, _ := openStream(relayed)
		s.long, s.ctx.identity.Token = long, tokenOf("B")
		s.registry.End(ended)
		Expect(s.ctx.Err() != nil).To(Equal(ends))
	},
		Entry("a stream of an ended grant", true, false, endedGrants("x", "A"), true),
		Entry("a call of an ended grant", false, false, endedGrants("A"), true),
		Entry("no stream of another grant", true, false, endedGrants("B"), false),
		Entry("a stream whose token was revoked", true, false,
			oauth.Ended{Tokens: []oauth.Digest{{}, digestOf(tokenOf("B"))}}, true),
		Entry("no stream of another token of the grant", true, false,
			oauth.Ended{Tokens: []oauth.Digest{digestOf(tokenOf("C"))}}, false),
		Entry("no call whose token was revoked, because it may finish", false, false,
			oauth.Ended{Tokens: []oauth.Digest{digestOf(tokenOf("B"))}}, false),
		Entry("a relayed call whose token was revoked, because it may never finish", false, true,
			oauth.Ended{Tokens: []oauth.Digest{digestOf(tokenOf("B"))}}, true),
		Entry("nothing when nothing has ended", true, true, oauth.Ended{}, false),
	)
})
