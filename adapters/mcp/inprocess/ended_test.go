package inprocess

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Closing the streams of ended grants", Label("G16", "E9"), func() {
	It("is idle before something is opened and after it has ended", func(ctx SpecContext) {
		s := openSite()
		Expect(s.mcp.Idle()).To(BeTrue())
		s.session(ctx, alice)
		Expect(s.mcp.Idle()).To(BeFalse())
		for range 3 { // it may be repeated
			s.mcp.CloseEnded(oauth.Ended{Grants: map[string]oauth.EndedGrant{"A": {}}})
		}
		Eventually(s.mcp.Idle).WithContext(ctx).WithTimeout(10 * time.Second).Should(BeTrue())
	})
})
