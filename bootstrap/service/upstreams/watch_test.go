package upstreams

import (
	"log/slog"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/features/suite"
)

func TestUpstreams(t *testing.T) { suite.Run(t, "Upstreams") }

var _ = Describe("Checking upstreams", Label("U31"), func() {
	It("asks one that is down more often, unless it names a time", func() {
		Expect(next(bootstrap.UpstreamState{State: "misconfigured"})).To(Equal(interval))
		Expect(next(bootstrap.UpstreamState{State: bootstrap.UpstreamDown})).To(Equal(outageInterval))
		Expect(next(bootstrap.UpstreamState{State: bootstrap.UpstreamDown, RetryAfter: 2 * time.Minute})).
			To(Equal(2 * time.Minute))
	})

	It("ends without a start", func() { New(nil, slog.New(slog.DiscardHandler)).Close() })
})
