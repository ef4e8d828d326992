package persistence

import (
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/connection"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("A trace in a SQLite file", func() {
	var store *Store
	BeforeEach(func() { store = openFresh() })
	steps := func(count int, attempt string, at time.Time) []connection.Step {
		made := make([]connection.Step, count)
		for i := range made {
			made[i] = connection.Step{
				At:      at,
				Kind:    connection.Refresh,
				Outcome: connection.Passed,
				Attempt: attempt,
			}
		}
		return made
	}

	knocks := func(count int) []connection.Step {
		made := steps(count, "", then)
		for i := range made {
			made[i].Kind = connection.Page
		}
		return made
	}
	keepFromGoing := func(attempt string) {
		Expect(store.writer.Exec("CREATE TRIGGER stuck BEFORE DELETE ON trace_steps WHEN old.attempt = '" + attempt +
			"' BEGIN SELECT RAISE(ABORT, 'stuck'); END").Error).To(Succeed())
	}

	It("gives back every member of a step, in order, from any step on", func(ctx SpecContext) {
		step := connection.Step{
			At:      then,
			Kind:    connection.Exchange,
			Outcome: connection.Refused,
			Attempt: "a",
			Request: "r",
			Client:  "c",
			Address: "n",
			Agent:   "u",
			Rule:    "D16",
			Reason:  "why",
		}
		Expect(store.AddSteps(ctx, append(steps(300, "b", then), step))).To(Succeed())
		found, err := store.Steps(ctx, 0)
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(HaveLen(301))
		step.Number = found[300].Number
		Expect(found[300]).To(Equal(step))
		Expect(store.Steps(ctx, found[299].Number)).To(Equal([]connection.Step{step}))
	})

	It("forgets what is too old", func(ctx SpecContext) {
		Expect(store.AddSteps(ctx, append(steps(2, "a", then), steps(1, "a", then.Add(time.Second))...))).To(Succeed())
		Expect(store.ForgetSteps(ctx, then.Add(time.Second), 10)).To(Equal(2))
		Expect(store.Steps(ctx, 0)).To(HaveLen(1))
	})

	It("keeps the newest steps of grants and the newest steps without a grant separately, so that anonymous requests "+
		"displace no grant", func(ctx SpecContext) {
		strangers := append(steps(25, "", then), steps(25, "b", then)...)
		for i := range strangers {
			strangers[i].Kind = connection.Unproven[i%len(connection.Unproven)]
		}
		strangers[0].Kind = connection.Call // without a grant
		granted := steps(5, "a", then)
		granted[1].Kind = connection.Page // belongs to the same attempt
		Expect(store.AddSteps(ctx, append(granted, strangers...))).To(Succeed())
		Expect(store.ForgetSteps(ctx, then, 4)).To(Equal(1 + 46))
		found, err := store.Steps(ctx, 0)
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(HaveLen(8))
		Expect(found[0].Number).To(BeEquivalentTo(2))
		Expect(found[7].Number).To(BeEquivalentTo(55))
	})

	It("forgets what is too old for good, even when it then cannot go on", func(ctx SpecContext) {
		Expect(store.AddSteps(ctx, append(steps(2, "a", then), steps(2, "b", then.Add(time.Second))...))).To(Succeed())
		keepFromGoing("b")
		deleted, err := store.ForgetSteps(ctx, then.Add(time.Second), 1)
		Expect(err).To(MatchError(ContainSubstring("stuck")))
		Expect(deleted).To(Equal(2))
		Expect(store.Steps(ctx, 0)).To(HaveLen(2))
	})

	It("makes no table of all attempts to find out what is too many", func() {
		for question, values := range map[string][]any{provingSteps: {connection.Unproven}, newestSteps: {mostSteps}} {
			var plan []struct{ Detail string }
			Expect(store.reader.Raw("EXPLAIN QUERY PLAN "+question, values...).Scan(&plan).Error).To(Succeed())
			Expect(plan).To(ConsistOf(HaveField("Detail", "SCAN trace_steps")))
		}
	})

	It("looks at so many at once, and the next time at the rest, so that no flood of strangers takes what belongs to "+
		"a grant", func(ctx SpecContext) {
		const most = 2 * forgetsSteps
		Expect(store.AddSteps(ctx, append(steps(5, "a", then), knocks(most+10)...))).To(Succeed())
		Expect(store.forgetStepsOf(ctx, then, 2, most)).To(Equal(most + 2))
		Expect(store.forgetStepsOf(ctx, then, 2, most)).To(Equal(6 + 3))
	})

	It("forgets those of strangers first", func(ctx SpecContext) {
		Expect(store.AddSteps(ctx, append(knocks(1+forgetsSteps), steps(2, "a", then)...))).To(Succeed())
		keepFromGoing("a")
		deleted, err := store.ForgetSteps(ctx, then, 1)
		Expect(err).To(MatchError(ContainSubstring("forgetting the trace")))
		Expect(deleted).To(Equal(forgetsSteps))
	})

	It("forgets what is too old even when the rest cannot be counted", func(ctx SpecContext) {
		Expect(store.AddSteps(ctx, append(steps(2, "a", then), steps(2, "a", then.Add(time.Second))...))).To(Succeed())
		Expect(store.writer.Exec("ALTER TABLE trace_steps RENAME COLUMN attempt TO something_else").Error).To(Succeed())
		deleted, err := store.ForgetSteps(ctx, then.Add(time.Second), 1)
		Expect(err).To(MatchError(ContainSubstring("counting the trace")))
		Expect(deleted).To(Equal(2))
	})

	It("is an outage while the file cannot be read", func(ctx SpecContext) {
		Expect(store.Close()).To(Succeed())
		_, err := store.ForgetSteps(ctx, then, 1)
		Expect(err).To(MatchError(oauth.ErrUnavailable))
	})

	itForgetsMany(func(SpecContext) *Store { return store })
})

// itForgetsMany adds the spec of a trace that has grown far beyond its bound: of the steps of
// strangers, a quarter are of one attempt, a quarter of none, and each other is of one of its own.
func itForgetsMany(open func(SpecContext) *Store) {
	It("deletes all surplus steps after an outage", func(ctx SpecContext) {
		store := open(ctx)
		const keep = 2 * forgetsSteps
		some := make([]connection.Step, keep)
		for part := range 3 {
			for i := range some {
				some[i] = connection.Step{
					At:      then,
					Kind:    connection.Page,
					Outcome: connection.Passed,
					Attempt: "reloaded",
				}
				switch i % 8 {
				case 3: // without a grant
					some[i].Kind, some[i].Attempt = connection.Call, ""
				case 0, 4:
					some[i].Attempt = strconv.Itoa(part*len(some) + i)
				case 1, 2, 5, 6:
					some[i].Kind, some[i].Attempt = connection.Refresh, "granted "+strconv.Itoa(i/8)
				}
			}
			Expect(store.AddSteps(ctx, some)).To(Succeed())
		}
		Expect(store.ForgetSteps(ctx, then, keep)).To(Equal(keep))
		found, err := store.Steps(ctx, 0)
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(HaveLen(2 * keep))
		Expect(found).To(HaveEach(HaveField("Number", BeNumerically(">", keep))))
	})
}
