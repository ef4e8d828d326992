package storespec

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

// flawVariable makes this test binary hold the contract against a flawed store instead of a correct one.
const flawVariable = "STORESPEC_FLAW"

var flaw = os.Getenv(flawVariable)

func TestStorespec(t *testing.T) {
	suite.Run(t, "The store contract")
}

var _ = Describe("A store", func() {
	Contract(func() oauth.Store { return openWith(flaw) }, reopenWith(flaw))
	WatchingEnds(func() oauth.Store { return openWith(flaw) })
	Counting(func() oauth.Store { return openWith(flaw) })
})

var _ = Describe("The store contract", func() {
	if flaw != "" {
		return
	}
	bites := map[string]bool{}

	DescribeTable("catches a store that",
		func(ctx SpecContext, flaw, promise string) {
			report, err := holdAgainst(ctx, flaw, promise)
			Expect(err).To(BeAssignableToTypeOf(&exec.ExitError{}), report)
			Expect(report).To(ContainSubstring("[FAIL] A store"))
			Expect(report).To(ContainSubstring("| 1 Failed |"))
			Expect(report).NotTo(ContainSubstring("WARNING: DATA RACE"))
		},
		func(flaw, _ string) string { bites[flaw] = true; return flaw },
		Entry(nil, "checks, then redeems", "lets exactly one of two overlapping redemptions win"),
		Entry(nil, "checks, then redeems", "leaves neither a code nor a grant alive that was ended while the code was redeemed"),
		Entry(nil, "checks, then acts", "lets 16 parallel refreshes converge on one successor"),
		Entry(nil, "checks, then acts", "leaves no grant alive that was ended while it was refreshed"),
		Entry(nil, "checks, then acts on approval", "lets either a redemption or a second approval win, never both"),
		Entry(nil, "forgets to roll a redemption back", "keeps neither when the redemption is refused"),
		Entry(nil, "spends the code without its grant", "returns ErrDuplicate for a grant with a token that is taken, and keeps neither"),
		Entry(nil, "leaves the code unspent", "keeps the spent code and the new grant together"),
		Entry(nil, "forgets to roll back", "saves nothing when the change is refused"),
		Entry(nil, "swallows a refusal", "saves nothing when the change is refused"),
		Entry(nil, "drops a field of a code", "keeps every field of a new code"),
		Entry(nil, "drops a field of a code", "keeps every field of a code that replaces another, and of one that is redeemed"),
		Entry(nil, "drops a field of a grant", "keeps every field of a new grant"),
		Entry(nil, "drops a field of a grant", "keeps every field of a changed grant"),
		Entry(nil, "drops a field of a secret", "keeps every field of a new grant"),
		Entry(nil, "keeps seconds", "keeps times in UTC to the millisecond"),
		Entry(nil, "keeps local times", "keeps times in UTC to the millisecond"),
		Entry(nil, "skips zero values", "keeps every field of a changed grant"),
		Entry(nil, "loses the other secrets", "finds a grant by each of its secrets"),
		Entry(nil, "supersedes without asking", "leaves everything as it was if it may not"),
		Entry(nil, "leaves the superseded code", "replaces it if it may be superseded"),
		Entry(nil, "accepts duplicates", "returns ErrDuplicate for a new code whose value is taken, and keeps none of it"),
		Entry(nil, "accepts duplicates", "leaves everything as it was if the value of the new one is taken"),
		Entry(nil, "accepts duplicates in a change", "returns ErrDuplicate when a change adds a token that is taken, and saves nothing"),
		Entry(nil, "has its own word for not found", "returns ErrNotFound for a token that belongs to no grant"),
		Entry(nil, "reads from a cache", "shows a revocation to the next read"),
		Entry(nil, "hands out what it keeps", "hands out copies that change nothing by themselves"),
		Entry(nil, "lists the newest first", "lists the codes and grants of one host token, each oldest first and grants without secrets"),
		Entry(nil, "lists grants only", "lists the codes and grants of one host token, each oldest first and grants without secrets"),
		Entry(nil, "changes everybody's grants", "changes all codes and grants of one host token and no other"),
		Entry(nil, "changes a copy of the codes", "changes all codes and grants of one host token and no other"),
		Entry(nil, "forgets to roll back a change of all", "changes none of them when the change is refused"),
		Entry(nil, "keeps codes", "forgets a code at the very instant that it may be forgotten, and leaves its grant"),
		Entry(nil, "forgets too early", "forgets a secret at the very instant that it may be forgotten, and only that one"),
		Entry(nil, "forgets too early", "forgets a grant with all its secrets at the very instant that it may be forgotten"),
		Entry(nil, "forgets too late", "forgets a secret at the very instant that it may be forgotten, and only that one"),
		Entry(nil, "does not count", "forgets a secret at the very instant that it may be forgotten, and only that one"),
		Entry(nil, "keeps the secrets of a forgotten grant", "forgets a grant with all its secrets at the very instant that it may be forgotten"),
		Entry(nil, "forgets a refresh token before its grant", "knows every spent refresh token for as long as its grant, and forgets them all with it"),
		Entry(nil, "forgets what was used", "lets an assertion be used once"),
		Entry(nil, "looks, then uses", "lets exactly one of 16 simultaneous uses of an assertion win"),
		Entry(nil, "keeps successors", "empties a successor's box at the very instant that nobody may open it any more, and does not count that"),
		Entry(nil, "keeps wraps", "empties the wraps of all secrets of a grant when it ends, and no others by one of its secrets"),
		Entry(nil, "keeps used assertions", "forgets a used assertion at the very instant that it may be forgotten, and only that one"),
		Entry(nil, "forgets too early", "forgets a used assertion at the very instant that it may be forgotten, and only that one"),
		Entry(nil, "forgets too late", "forgets a used assertion at the very instant that it may be forgotten, and only that one"),
		Entry(nil, "overlooks what ends at the very instant", "tells which grants have ended since an instant, that instant included, and no others"),
		Entry(nil, "tells of what ended before", "tells which tokens were revoked since an instant, that instant included, and no others"),
		Entry(nil, "tells of whole grants only", "tells which tokens were revoked since an instant, that instant included, and no others"),
		Entry(nil, "takes the living for ended", "tells nothing while nothing ends"),
		Entry(nil, "takes all for one", "counts each window by itself, and returns the counts in the order of the windows"),
		Entry(nil, "reads in another order", "counts each window by itself, and returns the counts in the order of the windows"),
		Entry(nil, "counts one of the windows", "counts each window by itself, and returns the counts in the order of the windows"),
		Entry(nil, "stops at the limit", "keeps the end that the first count gave a window, and counts beyond its limit"),
		Entry(nil, "opens a window anew with each count", "keeps the end that the first count gave a window, and counts beyond its limit"),
		Entry(nil, "begins anew too late", "begins anew at the very instant that a window is over"),
		Entry(nil, "counts when it is read", "reads without counting"),
		Entry(nil, "reads, then counts", "loses none of 16 simultaneous counts"),
		Entry(nil, "believes a clock that was ahead", "ignores counts of a clock that was years ahead"),
		Entry(nil, "believes the slowest clock", "continues a window of a clock that is a little ahead"),
		Entry(nil, "keeps windows", "forgets a window at the very instant that it is over, and only that one"),
		Entry(nil, "starts empty", "keeps its word after being reopened"),
	)

	It("is held against every flaw", func() {
		for _, flaws := range everyFlaw {
			for name := range flaws {
				Expect(bites).To(HaveKey(name))
			}
		}
	})
})

// holdAgainst runs this binary again, only for the promise that the flaw breaks.
func holdAgainst(ctx SpecContext, flaw, promise string) (string, error) {
	again := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestStorespec$", "-ginkgo.no-color", "-ginkgo.timeout=20s", "-ginkgo.focus="+regexp.QuoteMeta(promise)+"$")
	again.Env = append(os.Environ(), flawVariable+"="+flaw)
	report, err := again.CombinedOutput()
	return string(report), err
}
