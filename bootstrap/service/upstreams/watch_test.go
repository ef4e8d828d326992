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
	It("follows an outage closely at first, and then less often", func() {
		works, down := bootstrap.UpstreamState{State: "reachable"}, bootstrap.UpstreamState{State: "down"}
		Expect(next(bootstrap.UpstreamState{State: "misconfigured"}, interval)).To(Equal(time.Minute))
		var intervals []time.Duration
		for pause := interval; len(intervals) < 6; {
			pause = next(down, pause)
			intervals = append(intervals, pause/time.Second)
		}
		Expect(intervals).To(Equal([]time.Duration{1, 2, 4, 8, 10, 10}))
		Expect(next(works, 8*time.Second)).To(Equal(time.Minute))
	})

	It("asks a server that wants fewer requests after the longest interval of an outage, or after the time that "+
		"it names", func() {
		busy := bootstrap.UpstreamState{State: "try-later"}
		Expect(next(busy, interval)).To(Equal(10 * time.Second))
		busy.RetryAfter = 2 * time.Minute
		Expect(next(busy, time.Second)).To(Equal(2 * time.Minute))
		busy.RetryAfter = time.Second
		Expect(next(busy, time.Second)).To(Equal(10 * time.Second))
		Expect(next(bootstrap.UpstreamState{State: "down"}, 2*time.Minute)).To(Equal(time.Second))
	})

	It("ends without a start", func() { New(nil, slog.New(slog.DiscardHandler)).Close() })
})
