package mcp

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Closing what has ended, whoever ended it", Label("G16", "E9"), func() {
	tokenOf := func(letter string) string { return string(oauth.AccessTokenSecret) + strings.Repeat(letter, 42) + "A" }
	digestOf := func(token string) oauth.Digest { return (&identity{token: token}).digest() }

	DescribeTable("ends", func(long, relayed bool, ended oauth.Ended, ends bool) {
		s, _ := openStream(relayed)
		s.long, s.who.token = long, tokenOf("B")
		s.registry.end(ended)
		Expect(s.Err() != nil).To(Equal(ends))
	},
		Entry("a stream of an ended grant", true, false, oauth.Ended{Grants: []string{"x", "A"}}, true),
		Entry("a call of an ended grant", false, false, oauth.Ended{Grants: []string{"A"}}, true),
		Entry("no stream of another grant", true, false, oauth.Ended{Grants: []string{"B"}}, false),
		Entry("a stream whose token was revoked", true, false, oauth.Ended{Tokens: []oauth.Digest{{}, digestOf(tokenOf("B"))}}, true),
		Entry("no stream of another token of the grant", true, false, oauth.Ended{Tokens: []oauth.Digest{digestOf(tokenOf("C"))}}, false),
		Entry("no call whose token was revoked, for it may finish", false, false, oauth.Ended{Tokens: []oauth.Digest{digestOf(tokenOf("B"))}}, false),
		Entry("a relayed call whose token was revoked, for it may never finish", false, true, oauth.Ended{Tokens: []oauth.Digest{digestOf(tokenOf("B"))}}, true),
		Entry("nothing when nothing has ended", true, true, oauth.Ended{}, false),
	)

	It("has nothing to do before something is opened, nor after its end", func(ctx SpecContext) {
		s := openSite()
		Expect(s.mcp.Idle()).To(BeTrue())
		s.session(ctx, alice)
		Expect(s.mcp.Idle()).To(BeFalse())
		for range 3 { // doing it again is harmless
			s.mcp.CloseEnded(oauth.Ended{Grants: []string{"A"}})
		}
		Eventually(s.mcp.Idle).WithContext(ctx).WithTimeout(10 * time.Second).Should(BeTrue())
	})
})
