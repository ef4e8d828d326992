package admin

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/pasteport/pasteport/features/suite"
)

func TestAdmin(t *testing.T) {
	suite.Run(t, "Admin listener")
}

var _ = Describe("A check", Label("operations"), func() {
	It("logs only changes of its result", func(ctx SpecContext) {
		log := gbytes.NewBuffer()
		var failure error
		check := Logged("disk", func(context.Context) error { return failure },
			slog.New(slog.NewTextHandler(log, nil)))
		ask := func() {
			_, err := check.Run(ctx)
			Expect(errors.Is(err, failure)).To(BeTrue())
		}
		ask()
		failure = errors.New("full")
		ask()
		ask()
		failure = nil
		ask()
		ask()
		Expect(string(log.Contents())).To(MatchRegexp(
			`^[^\n]+level=WARN msg="a readiness check fails" check=disk error=full\n[^\n]+level=INFO msg="a ` +
				`readiness check passes again" check=disk\n$`))
	})
})
