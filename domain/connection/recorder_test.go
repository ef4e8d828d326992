package connection_test

import (
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/connection"
	"github.com/pasteport/pasteport/domain/oauth"
)

// notes is a connection.Journal in memory.
type notes []connection.Entry

func (n *notes) Note(entry connection.Entry) { *n = append(*n, entry) }

var _ = Describe("Recording", func() {
	var noted notes
	begin := func() *connection.Recorder {
		noted = nil
		recorder := connection.From(connection.Begin(GinkgoT().Context(), "R", "192.0.2.0/24", "cli"))
		recorder.Journal = &noted
		return recorder
	}

	It("notes each step with its origin and its attempt, which may be set later", func() {
		recorder := begin()
		recorder.Record(connection.Authorize)
		recorder.Record(connection.Page)
		recorder.Identify("a", "https://client.example/c.json")
		recorder.Identify("", "") // empty values change nothing
		Expect(noted).To(BeEmpty())
		recorder.End()
		entry := connection.Entry{
			Step: connection.Step{
				Kind:    connection.Authorize,
				Outcome: connection.Passed,
				Request: "R",
			},
			Attempt: "a",
			Client:  "https://client.example/c.json",
			Address: "192.0.2.0/24",
			Agent:   "cli",
		}
		Expect(noted[0]).To(Equal(entry))
		entry.Kind = connection.Page
		Expect(noted[1:]).To(ConsistOf(entry))
		recorder.End()
		Expect(noted).To(HaveLen(2), "each step once")
	})

	It("notes nothing that came before the journal", func() {
		recorder := connection.From(connection.Begin(GinkgoT().Context(), "R", "", ""))
		recorder.Record(connection.Page)
		noted, recorder.Journal = nil, &noted
		recorder.End()
		Expect(noted).To(BeEmpty())
	})

	It("refuses the last step only, with rule and reason", func() {
		recorder := begin()
		recorder.Record(connection.Authorize)
		recorder.Record(connection.Page)
		recorder.Refuse(oauth.Refuse(oauth.InvalidRequest, "A12", "the redirect_uri is another"))
		recorder.End()
		Expect(noted[0].Outcome).To(Equal(connection.Passed))
		Expect(noted[1].Outcome).To(Equal(connection.Refused))
		Expect(noted[1].Rule).To(Equal("A12"))
		Expect(noted[1].Reason).To(ContainSubstring("the redirect_uri is another"))
	})

	It("does not record the text of other errors, which may contain secrets", func() {
		recorder := begin()
		recorder.RefuseAt(connection.Refresh, errors.New("dial tcp: password=hunter2"))
		recorder.End()
		Expect(noted).To(HaveLen(1))
		Expect(noted[0].Kind).To(Equal(connection.Refresh))
		Expect(noted[0].Outcome).To(Equal(connection.Failed))
		Expect(noted[0].Reason).NotTo(ContainSubstring("hunter2"))
	})

	It("refuses the last step if there is one, and not the given one", func() {
		recorder := begin()
		recorder.Record(connection.ClientMetadata)
		recorder.RefuseAt(connection.Authorize, oauth.Refuse(oauth.InvalidRequest, "C41", "the host does not answer"))
		recorder.End()
		Expect(noted).To(HaveLen(1))
		Expect(noted[0].Kind).To(Equal(connection.ClientMetadata))
	})

	It("records an outage of the site as a failure and not as a refusal", func() {
		recorder := begin()
		recorder.RefuseAt(connection.TokenJudged,
			oauth.Refuse(oauth.TemporarilyUnavailable, "B9", "the site does not answer"))
		recorder.End()
		Expect(noted[0].Outcome).To(Equal(connection.Failed))
	})

	DescribeTable("sets the outcome of a call by its status:",
		func(kind connection.Kind, status int, outcome connection.Outcome) {
			recorder := begin()
			recorder.Record(kind)
			recorder.Answer(status)
			Expect(noted).To(HaveLen(1))
			Expect(noted[0].Outcome).To(Equal(outcome))
		},
		Entry("answered", connection.Call, 200, connection.Passed),
		Entry("accepted", connection.Call, 202, connection.Passed),
		Entry("refused", connection.Call, 400, connection.Refused),
		Entry("failed", connection.Call, 500, connection.Failed),
		Entry("a refused stream", connection.Stream, 406, connection.Refused),
		Entry("no other step, whose outcome is set elsewhere", connection.Exchange, 400, connection.Passed),
		Entry("no other step with a failure", connection.Exchange, 500, connection.Passed),
	)

	It("names the revision that the server does not speak, for the step that asks only", func() {
		recorder := begin()
		recorder.Record(connection.Call)
		recorder.AsksRevision()
		recorder.Answer(400)
		recorder.Record(connection.Call)
		recorder.Answer(400)
		Expect(noted[0].Reason).To(Equal(connection.OlderRevision))
		Expect(noted[1].Reason).To(Equal("The answer was HTTP 400."))
	})

	It("knows the rule of a refusal without a journal", func() {
		recorder := connection.From(connection.Begin(GinkgoT().Context(), "R", "", ""))
		recorder.Refuse(oauth.Refuse(oauth.InvalidRequest, "A12", "the redirect_uri is another"))
		Expect(recorder.Rule()).To(Equal("A12"))
	})

	It("does nothing without a Recorder", func() {
		recorder := connection.From(GinkgoT().Context())
		recorder.Identify("a", "b")
		recorder.Record(connection.Page)
		recorder.Refuse(errors.New("x"))
		recorder.RefuseAt(connection.Page, errors.New("x"))
		recorder.Answer(200)
		recorder.End()
		Expect(recorder.Request()).To(BeEmpty())
		Expect(recorder.Rule()).To(BeEmpty())
	})
})
