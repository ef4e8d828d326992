package features_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	badRequests = 1000
	renewEvery  = 50 // below the limit of failures per address and minute
)

var _ = Describe("Surviving a scanner", Label("N12", "A3", "A40", "D1", "D30"), func() {
	It("responds to bad requests without internal errors, echoed input, stack traces or open redirects, "+
		"and keeps its state",
		Label("long"), func(ctx SpecContext) {
			seed := uint64(GinkgoRandomSeed())
			s := &scanner{World: NewWorld(), chance: rand.New(rand.NewPCG(seed, 0))}
			s.client = s.NewClient()
			first := s.client.Connect(ctx)
			statuses := map[int]int{}
			for n := range badRequests {
				if n%renewEvery == 0 {
					s.renew(ctx)
				}
				a := s.attempt()
				answer, err := s.send(a)
				told := func() string {
					return fmt.Sprintf("seed %d, request %d:\n%.2000q\n%v", seed, n, a.wire(), answer)
				}
				Expect(err).NotTo(HaveOccurred(), told)
				Expect(s.complaint(a, answer)).To(BeEmpty(), told)
				statuses[answer.StatusCode]++
			}
			AddReportEntry("statuses", statuses, ReportEntryVisibilityFailureOrVerbose)
			Expect(statuses).To(And(HaveKey(200), HaveKey(303), HaveKey(400), HaveKey(401), HaveKey(403), HaveKey(404),
				HaveKey(405), HaveKey(415)))
			s.renew(ctx)
			Expect(s.client.Token(ctx, s.client.Refresh(first.Refresh)).StatusCode).To(Equal(http.StatusOK))
			Expect(s.Log.String()).
				NotTo(Or(ContainSubstring(`"level":"ERROR"`), ContainSubstring("panic"), ContainSubstring(s.Token)))
		})
})

// scanner sends invalid requests. It renews its tokens regularly, because some of its requests are
// valid.
type scanner struct {
	*World
	chance *rand.Rand
	client *Client

	kept        string // a code that no request contains
	code        string
	ticket      string
	revocable   Tokens
	refreshable Tokens
	access      string
}

// renew checks that a valid exchange still succeeds, and advances the clock past the limit for
// guesses.
func (s *scanner) renew(ctx context.Context) {
	GinkgoHelper()
	if s.kept != "" {
		Expect(s.client.Token(ctx, s.client.Exchange(s.kept)).StatusCode).To(Equal(http.StatusOK))
	}
	s.Clock.Advance(5 * time.Minute)
	s.kept, s.code = s.client.Authorize(ctx), s.client.Authorize(ctx)
	s.ticket = s.client.Consent(ctx).Hidden.Get("ticket")
	s.revocable, s.refreshable, s.access = s.client.Connect(ctx), s.client.Connect(ctx), s.client.Connect(ctx).Access
}

func (s *scanner) send(a attempt) (Response, error) {
	wire, err := net.Dial("tcp", strings.TrimPrefix(s.Issuer, "http://"))
	if err != nil {
		return Response{}, err
	}
	defer func() { _ = wire.Close() }()
	if err := wire.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return Response{}, err
	}
	_, _ = io.WriteString(wire, a.wire()) // the response may arrive before the end
	if a.cutShort {
		_ = wire.(*net.TCPConn).CloseWrite()
	}
	in := bufio.NewReader(wire)
	for {
		answer, err := http.ReadResponse(in, &http.Request{Method: a.method})
		if err != nil {
			return Response{}, fmt.Errorf("reading an answer: %w", err)
		}
		if answer.StatusCode >= http.StatusOK {
			return read(answer)
		}
	}
}

// read reads only the start of a stream, which has no end. A server may close the connection before
// it has read the whole request.
func read(answer *http.Response) (Response, error) {
	if strings.HasPrefix(answer.Header.Get("Content-Type"), eventStream) {
		line, err := bufio.NewReader(answer.Body).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return Response{answer, line}, err
	}
	text, err := io.ReadAll(answer.Body)
	if errors.Is(err, syscall.ECONNRESET) {
		err = nil
	}
	return Response{answer, string(text)}, err
}

const eventStream = "text/event-stream"

// marker becomes an element if a page does not escape it.
const marker = `zqx9"'><zqx9>`

// insides matches text of errors and stack traces that cannot occur in a sealed ticket by chance.
var insides = regexp.MustCompile(
	`goroutine \d|\.go:\d|runtime error|panic[: ]|SQLITE_|sqlite[.: ]|gorm[.:/]|no such table|stack trace`)

// complaint returns the violation in a response, or "".
func (s *scanner) complaint(a attempt, answer Response) string {
	media, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	target := answer.Header.Get("Location")
	switch {
	case answer.StatusCode >= http.StatusInternalServerError:
		return "a fault"
	case insides.MatchString(answer.Text):
		return "a look inside"
	case answer.Header.Get("Set-Cookie")+answer.Header.Get("X-Injected") != "":
		return "a header that was never sent"
	case (target != "" || answer.StatusCode/100 == 3) &&
		!(answer.StatusCode == http.StatusSeeOther && s.verified(target)):
		return "a redirect to " + target
	case media == "application/json" && a.method != http.MethodHead && answer.StatusCode != http.StatusPartialContent &&
		!json.Valid([]byte(answer.Text)):
		return "no JSON"
	case media == "text/html" && !strings.Contains(answer.Header.Get("Content-Security-Policy"), "default-src 'none'"):
		return "a page that may do anything"
	case strings.Contains(answer.Text, "zqx9") && // strings of JSON-RPC may repeat input
		!(media == "application/json" && strings.Contains(answer.Text, `"jsonrpc"`)):
		return "an echo in the body"
	}
	for name, values := range answer.Header {
		if name != "Location" && strings.Contains(strings.Join(values, ""), "zqx9") {
			return "an echo in the header " + name
		}
	}
	return ""
}

// verified reports whether the client has published the target of a redirect.
func (s *scanner) verified(target string) bool {
	u, err := url.Parse(target)
	if err != nil || u.User != nil || u.Fragment != "" || u.Path != "/callback" || strings.Contains(target, marker) {
		return false
	}
	answered := u.Query().Has("code") != u.Query().Has("error") && slices.Equal(u.Query()["iss"], []string{s.Issuer})
	local := u.Scheme == "http" && u.Hostname() == "127.0.0.1"
	return answered && (local || u.Scheme == "https" && u.Host == "client.example")
}
