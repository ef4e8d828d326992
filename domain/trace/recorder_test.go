package trace_test

import (
	"errors"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// notes is a trace.Journal in memory.
type notes []trace.Step

func (n *notes) Note(step trace.Step) { *n = append(*n, step) }

// HasRecent reports a recent call of the attempt "used".
func (*notes) HasRecent(attempt string, kind trace.Kind, _ time.Time) bool {
	return attempt == "used" && kind == trace.Call
}

func same(origin trace.Origin) trace.Origin { return origin }

var _ = Describe("Recording", func() {
	var noted notes
	begin := func() *trace.Recorder {
		noted = nil
		recorder := trace.From(
			trace.Begin(GinkgoT().Context(), trace.Origin{Request: "R", Address: home, Agent: "cli"}, same))
		recorder.SetJournal(&noted, func() time.Time { return then })
		return recorder
	}

	It("notes each step with its origin and its attempt, which may be set later", func() {
		recorder := begin()
		recorder.Record(trace.Authorize)
		recorder.Record(trace.Page)
		recorder.Identify("a", "https://client.example/c.json")
		recorder.Identify("", "") // empty values change nothing
		Expect(noted).To(BeEmpty())
		recorder.End()
		step := trace.Step{
			At:      then,
			Kind:    trace.Authorize,
			Outcome: trace.Passed,
			Attempt: "a",
			Client:  "https://client.example/c.json",
			Request: "R",
			Address: home,
			Agent:   "cli",
		}
		Expect(noted[0]).To(Equal(step))
		step.Kind = trace.Page
		Expect(noted[1:]).To(ConsistOf(step))
		recorder.End()
		Expect(noted).To(HaveLen(2), "each step once")
	})

	It("notes only calls that are not recent or that failed", func() {
		recorder := begin()
		recorder.Identify("used", "")
		recorder.Record(trace.Call)
		recorder.Answer(200)
		Expect(noted).To(BeEmpty())
		recorder.Record(trace.Stream)
		recorder.Answer(200)
		recorder.Record(trace.Call)
		recorder.Answer(500)
		Expect(noted).To(HaveLen(2))
	})

	It("refuses the last step only, with rule and reason", func() {
		recorder := begin()
		recorder.Record(trace.Authorize)
		recorder.Record(trace.Page)
		recorder.Refuse(oauth.Refuse(oauth.InvalidRequest, "A12", "the redirect_uri is another"))
		recorder.End()
		Expect(noted[0].Outcome).To(Equal(trace.Passed))
		Expect(noted[1].Outcome).To(Equal(trace.Refused))
		Expect(noted[1].Rule).To(Equal("A12"))
		Expect(noted[1].Reason).To(ContainSubstring("the redirect_uri is another"))
	})

	It("does not record the text of other errors, which may contain secrets", func() {
		recorder := begin()
		recorder.RefuseAt(trace.Refresh, errors.New("dial tcp: password=hunter2"))
		recorder.End()
		Expect(noted).To(HaveLen(1))
		Expect(noted[0].Kind).To(Equal(trace.Refresh))
		Expect(noted[0].Outcome).To(Equal(trace.Failed))
		Expect(noted[0].Reason).NotTo(ContainSubstring("hunter2"))
	})

	It("refuses the last step if there is one, and not the given one", func() {
		recorder := begin()
		recorder.Record(trace.ClientMetadata)
		recorder.RefuseAt(trace.Authorize, oauth.Refuse(oauth.InvalidRequest, "C41", "the host does not answer"))
		recorder.End()
		Expect(noted).To(HaveLen(1))
		Expect(noted[0].Kind).To(Equal(trace.ClientMetadata))
	})

	It("records an outage of the site as a failure and not as a refusal", func() {
		recorder := begin()
		recorder.RefuseAt(trace.TokenJudged,
			oauth.Refuse(oauth.TemporarilyUnavailable, "B9", "the site does not answer"))
		recorder.End()
		Expect(noted[0].Outcome).To(Equal(trace.Failed))
	})

	It("truncates texts of clients and removes control characters", func() {
		recorder := trace.From(
			trace.Begin(GinkgoT().Context(), trace.Origin{Agent: "a\x1b[2Jé" + strings.Repeat("x", 500)}, same))
		recorder.SetJournal(&noted, func() time.Time { return then })
		noted = nil
		recorder.Record(trace.Challenge)
		recorder.Identify("", "c\x1b[2Jé"+strings.Repeat("x", 500))
		recorder.End()
		Expect(noted[0].Agent).To(And(HavePrefix("a?[2J?x"), HaveLen(300)))
		Expect(noted[0].Client).To(And(HavePrefix("c?[2J?x"), HaveLen(300)))
	})

	DescribeTable("sets the outcome of a call by its status:",
		func(kind trace.Kind, status int, outcome trace.Outcome) {
			recorder := begin()
			recorder.Record(kind)
			recorder.Answer(status)
			Expect(noted).To(HaveLen(1))
			Expect(noted[0].Outcome).To(Equal(outcome))
		},
		Entry("answered", trace.Call, 200, trace.Passed), Entry("accepted", trace.Call, 202, trace.Passed),
		Entry("refused", trace.Call, 400, trace.Refused), Entry("failed", trace.Call, 500, trace.Failed),
		Entry("a refused stream", trace.Stream, 406, trace.Refused),
		Entry("no other step, whose outcome is set elsewhere", trace.Exchange, 400, trace.Passed),
		Entry("no other step with a failure", trace.Exchange, 500, trace.Passed),
	)

	It("does nothing without a Recorder", func() {
		recorder := trace.From(GinkgoT().Context())
		recorder.Identify("a", "b")
		recorder.Record(trace.Page)
		recorder.Refuse(errors.New("x"))
		recorder.RefuseAt(trace.Page, errors.New("x"))
		recorder.Answer(200)
		recorder.End()
		Expect(recorder.Request()).To(BeEmpty())
	})
})
