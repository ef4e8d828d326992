package gateway

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/oauth"
)

// endless is an Upstream whose streams end with their requests.
type endless struct{}

func (endless) Forward(
	w http.ResponseWriter,
	r *http.Request,
	_ message.Body,
	_ oauth.Caller,
	_ oauth.HostToken,
) error {
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
	return nil
}

var _ = Describe("The streams of one person through a gateway", Label("G20"), func() {
	const perPerson = 3
	var s *site
	BeforeEach(func() {
		s = open(endless{}, func(o *Options, _ *http.Server) {
			o.Limits = oauth.Limits{MaxSessions: 100, MaxSessionsPerPerson: perPerson}
		})
	})

	DescribeTable("stay limited after many", func(ctx context.Context, body string, status int) {
		for range 2 * perPerson {
			Expect(s.send(ctx, http.MethodPost, body)).To(HaveHTTPStatus(status))
		}
		for range 3 * perPerson {
			s.send(ctx, http.MethodGet, "")
		}
		Eventually(func() int {
			streams, _ := s.gateway.Open()
			return streams
		}).Should(Equal(perPerson))
	},
		Entry("requests", call, http.StatusAccepted),
		Entry("batches with a subscription and answers that are refused",
			"["+strings.Join([]string{
				`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}`,
				`{"jsonrpc":"2.0","id":2,"result":{}}`, `{"jsonrpc":"2.0","id":3,"result":{}}`, `{"Method":"x"}`,
			}, ",")+"]", http.StatusBadRequest),
	)
})

var _ = Describe("A slow upstream", Label("G16"), func() {
	It("may answer without a stream after the deadline of the server", func(ctx SpecContext) {
		const deadline = 50 * time.Millisecond
		release := make(chan struct{})
		behind := &silent{heard: make(chan struct{}), answer: func(w http.ResponseWriter) error {
			<-release
			return answering("application/json", "{}")(w)
		}}
		s := open(behind, func(_ *Options, server *http.Server) { server.WriteTimeout = deadline })
		answers := make(chan []byte, 1)
		go func() {
			defer GinkgoRecover()
			body, err := io.ReadAll(s.send(ctx, http.MethodPost, call).Body)
			Expect(err).NotTo(HaveOccurred())
			answers <- body
		}()
		Eventually(behind.heard).WithTimeout(5 * time.Second).Should(BeSent(struct{}{}))
		Consistently(answers, 4*deadline).ShouldNot(Receive())
		close(release)
		Eventually(answers).WithTimeout(5 * time.Second).Should(Receive(Equal([]byte("{}"))))
	}, SpecTimeout(10*time.Second))
})
