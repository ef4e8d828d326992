package upstreams

import (
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
		works, down := Status{State: bootstrap.UpstreamState{State: "reachable"}}, Status{State: bootstrap.UpstreamState{State: "unreachable"}}
		wrong := Status{State: bootstrap.UpstreamState{State: "wrong-path"}}
		Expect(next([]Status{works, wrong}, interval)).To(Equal(time.Minute))
		var intervals []time.Duration
		for pause := interval; len(intervals) < 6; {
			pause = next([]Status{works, down}, pause)
			intervals = append(intervals, pause/time.Second)
		}
		Expect(intervals).To(Equal([]time.Duration{1, 2, 4, 8, 10, 10}))
		Expect(next([]Status{works, works}, 8*time.Second)).To(Equal(time.Minute))
	})
})
