package attempt_test

import (
	"errors"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

// notes is a attempt.Journal in memory.
type notes []attempt.Entry

func (n *notes) Note(entry attempt.Entry) { *n = append(*n, entry) }

var _ = Describe("Recording", func() {
	var noted notes
	begin := func() *attempt.Recorder {
		noted = nil
		recorder := attempt.From(attempt.Begin(GinkgoT().Context(), "R", "192.0.2.0/24", "cli"))
		recorder.Journal = &noted
		return recorder
	}

	It("notes each step with its origin and its attempt, which may be set later", func() {
		recorder := begin()
		recorder.Record(attempt.Authorize)
		recorder.Record(attempt.Page)
		recorder.Identify("a", "https://client.example/c.json")
		recorder.Identify("", "") // empty values change nothing
		Expect(noted).To(BeEmpty())
		recorder.End()
		entry := attempt.Entry{
			Step: attempt.Step{
				Kind:    attempt.Authorize,
				Outcome: attempt.Passed,
				Request: "R",
			},
			Attempt: "a",
			Client:  "https://client.example/c.json",
			Address: "192.0.2.0/24",
			Agent:   "cli",
		}
		Expect(noted[0]).To(Equal(entry))
		entry.Kind = attempt.Page
		Expect(noted[1:]).To(ConsistOf(entry))
		recorder.End()
		Expect(noted).To(HaveLen(2), "each step once")
	})

	It("refuses the last step only, with rule and reason", func() {
		recorder := begin()
		recorder.Record(attempt.Authorize)
		recorder.Record(attempt.Page)
		recorder.Refuse(oauth.Refuse(oauth.InvalidRequest, "A12", "the redirect_uri is another"))
		recorder.End()
		Expect(noted[0].Outcome).To(Equal(attempt.Passed))
		Expect(noted[1].Outcome).To(Equal(attempt.Refused))
		Expect(noted[1].Rule).To(Equal("A12"))
		Expect(noted[1].Reason).To(ContainSubstring("the redirect_uri is another"))
	})

	It("does not record the text of other errors, which may contain secrets", func() {
		recorder := begin()
		recorder.RefuseAt(attempt.Refresh, errors.New("dial tcp: password=hunter2"))
		recorder.End()
		Expect(noted).To(HaveLen(1))
		Expect(noted[0].Kind).To(Equal(attempt.Refresh))
		Expect(noted[0].Outcome).To(Equal(attempt.Failed))
		Expect(noted[0].Reason).NotTo(ContainSubstring("hunter2"))
	})

	It("refuses the last step if there is one, and not the given one", func() {
		recorder := begin()
		recorder.Record(attempt.ClientMetadata)
		recorder.RefuseAt(attempt.Authorize, oauth.Refuse(oauth.InvalidRequest, "C41", "the host does not answer"))
		recorder.End()
		Expect(noted).To(HaveLen(1))
		Expect(noted[0].Kind).To(Equal(attempt.ClientMetadata))
	})

	DescribeTable("sets the outcome of a call by its status:",
		func(kind attempt.Kind, status int, outcome attempt.Outcome) {
			recorder := begin()
			recorder.Record(kind)
			recorder.Answer(status)
			Expect(noted).To(HaveLen(1))
			Expect(noted[0].Outcome).To(Equal(outcome))
		},
		Entry("answered", attempt.Call, 200, attempt.Passed),
		Entry("refused", attempt.Call, 400, attempt.Refused),
		Entry("failed", attempt.Call, 500, attempt.Failed),
		Entry("no other step, whose outcome is set elsewhere", attempt.Exchange, 400, attempt.Passed),
	)

	It("does nothing without a Recorder", func() {
		recorder := attempt.From(GinkgoT().Context())
		recorder.Identify("a", "b")
		recorder.Record(attempt.Page)
		recorder.Refuse(errors.New("x"))
		recorder.RefuseAt(attempt.Page, errors.New("x"))
		recorder.Answer(200)
		recorder.End()
		Expect(recorder.Request()).To(BeEmpty())
		Expect(recorder.Rule()).To(BeEmpty())
	})
})

func TestTrace(t *testing.T) { suite.Run(t, "Trace") }
