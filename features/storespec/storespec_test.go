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

// flawVariable names the flaw of the store that this test binary tests; the store is correct
// without it.
const flawVariable = "STORESPEC_FLAW"

var flaw = os.Getenv(flawVariable)

func TestStorespec(t *testing.T) {
	suite.Run(t, "The store contract")
}

var _ = Describe("A store", func() {
	Contract(func() oauth.Store { return openWith(flaw) }, reopenWith(flaw))
	RecordingUses(func() oauth.Store { return openWith(flaw) })
	WatchingEnds(func() oauth.Store { return openWith(flaw) })
	Listing(func() oauth.Store { return openWith(flaw) })
})

var _ = Describe("The store contract", func() {
	if flaw != "" {
		return
	}
	caught := map[string]bool{}

	DescribeTable("catches a store that",
		func(ctx SpecContext, flaw, promise string) {
			report, err := runWithFlaw(ctx, flaw, promise)
			Expect(err).To(BeAssignableToTypeOf(&exec.ExitError{}), report)
			Expect(report).To(ContainSubstring("[FAIL] A store"))
			Expect(report).To(ContainSubstring("| 1 Failed |"))
			Expect(report).NotTo(ContainSubstring("WARNING: DATA RACE"))
		},
		func(flaw, _ string) string { caught[flaw] = true; return flaw },
		Entry(nil, "redeems outside of a transaction", "redeems a code once when two redemptions overlap"),
		Entry(nil, "redeems outside of a transaction",
			"ends a code and its grant when the code is redeemed at the same time"),
		Entry(nil, "updates outside of a transaction", "gives 16 concurrent refreshes the same successor"),
		Entry(nil, "updates outside of a transaction", "ends a grant that is refreshed at the same time"),
		Entry(nil, "supersedes outside of a transaction",
			"accepts either a redemption or a second approval, never both"),
		Entry(nil, "does not roll back a refused change", "stores neither when the redemption is refused"),
		Entry(nil, "stores the redeemed code without its grant", "stores the redeemed code and the new grant together"),
		Entry(nil, "does not store the redeemed code", "stores the redeemed code and the new grant together"),
		Entry(nil, "does not roll back a refused change", "stores nothing when the change returns an error"),
		Entry(nil, "swallows the error of a change", "stores nothing when the change returns an error"),
		Entry(nil, "drops a field of a code", "stores every field of a new code"),
		Entry(nil, "drops a field of a code", "stores every field of a code that replaces another or is redeemed"),
		Entry(nil, "drops a field of a grant", "stores every field of a new grant"),
		Entry(nil, "drops a field of a grant", "stores every field of a changed grant"),
		Entry(nil, "drops a field of an access token", "stores every field of a new grant"),
		Entry(nil, "drops a field of a rotation", "stores every field of a new grant"),
		Entry(nil, "returns an error for an unknown grant", "finds nothing for an unknown grant"),
		Entry(nil, "updates outside of a transaction", "loses no change when two changes overlap"),
		Entry(nil, "updates outside of a transaction", "keeps no change that a closure made to an older state"),
		Entry(nil, "runs a closure again on what it has changed",
			"keeps no change that a closure made to an older state"),
		Entry(nil, "records the earlier of two last uses", "keeps the later of two last uses, in any order"),
		Entry(nil, "records one last use only",
			"records the last uses of many grants at once, and ignores unknown ones"),
		Entry(nil, "undoes a change when it records a use",
			"undoes no change by recording a use, and no use by a change"),
		Entry(nil, "undoes a use by a change", "undoes no change by recording a use, and no use by a change"),
		Entry(nil, "changes all grants outside of a transaction",
			"loses no change when all grants of a host token change at the same time"),
		Entry(nil, "changes all grants outside of a transaction",
			"undoes no use by a change of all grants of a host token"),
		Entry(nil, "undoes a use by a change", "does not keep a last use that only a change knows"),
		Entry(nil, "deletes no grant", "deletes a grant exactly at its ForgetAfter, and no other"),
		Entry(nil, "deletes a grant by the end that it had first", "keeps a grant whose end a refresh has moved"),
		Entry(nil, "truncates times to seconds", "stores times in UTC to the millisecond"),
		Entry(nil, "returns local times", "stores times in UTC to the millisecond"),
		Entry(nil, "does not store zero values", "stores every field of a changed grant"),
		Entry(nil, "replaces a code without a look at the earlier one",
			"changes nothing when supersede returns an error"),
		Entry(nil, "keeps the superseded code", "replaces it when supersede returns nil"),
		Entry(nil, "returns stale grants from a cache", "shows a revocation to the next read"),
		Entry(nil, "returns its own records instead of copies",
			"returns copies, so that changing them does not change the store"),
		Entry(nil, "lists grants only", "lists the codes and grants of one host token"),
		Entry(nil, "changes the grants of every host token",
			"changes all codes and grants of one host token, and no others"),
		Entry(nil, "finds grants by their first host token",
			"finds codes and grants by their newest host token, and by no earlier one"),
		Entry(nil, "changes a copy of the codes", "changes all codes and grants of one host token, and no others"),
		Entry(nil, "does not roll back a refused change",
			"changes none of them when the change returns an error"),
		Entry(nil, "never deletes codes", "deletes a code exactly at its ForgetAfter, and keeps its grant"),
		Entry(nil, "deletes a millisecond too early", "deletes a code exactly at its ForgetAfter, and keeps its grant"),
		Entry(nil, "deletes a millisecond too early", "deletes a grant exactly at its ForgetAfter, and no other"),
		Entry(nil, "deletes a millisecond too late", "deletes a code exactly at its ForgetAfter, and keeps its grant"),
		Entry(nil, "returns no number of deleted rows",
			"deletes a code exactly at its ForgetAfter, and keeps its grant"),
		Entry(nil, "accepts used assertions again", "accepts an assertion once"),
		Entry(nil, "uses assertions outside of a transaction", "accepts one of 16 concurrent uses of an assertion"),
		Entry(nil, "never deletes used assertions",
			"deletes a used assertion exactly at its forgetAfter, and no other"),
		Entry(nil, "deletes a millisecond too early",
			"deletes a used assertion exactly at its forgetAfter, and no other"),
		Entry(nil, "deletes a millisecond too late",
			"deletes a used assertion exactly at its forgetAfter, and no other"),
		Entry(nil, "leaves out what ended exactly at the time",
			"returns the grants that ended at or after a time, and no others"),
		Entry(nil, "returns what ended a millisecond before the time",
			"returns the tokens that were revoked at or after a time, and no others"),
		Entry(nil, "does not tell whose grant ended",
			"returns the grants that ended at or after a time, and no others"),
		Entry(nil, "returns grants but no tokens",
			"returns the tokens that were revoked at or after a time, and no others"),
		Entry(nil, "returns active grants", "returns nothing when nothing has ended"),
		Entry(nil, "lists no issued codes", "lists issued codes and all grants once"),
		Entry(nil, "lists while it holds its lock", "can be changed while it lists"),
		Entry(nil, "is empty when it is reopened", "keeps codes, grants and used assertions when it is reopened"),
	)

	It("is tested against every flaw", func() {
		for _, flaws := range allFlaws {
			for name := range flaws {
				Expect(caught).To(HaveKey(name))
			}
		}
	})
})

// runWithFlaw runs this binary again with a flawed store, and only the spec of the promise that the
// flaw breaks.
func runWithFlaw(ctx SpecContext, flaw, promise string) (string, error) {
	again := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestStorespec$", "-ginkgo.no-color",
		"-ginkgo.timeout=20s", "-ginkgo.focus="+regexp.QuoteMeta(promise)+"$")
	again.Env = append(os.Environ(), flawVariable+"="+flaw)
	report, err := again.CombinedOutput()
	return string(report), err
}
