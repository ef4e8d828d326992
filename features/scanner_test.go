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
	renewEvery  = 50 // fewer than the failures that one address may have in a minute
)

var _ = Describe("Being scanned", Label("N12", "A3", "A40", "D1", "D30"), func() {
	It("answers bad requests without fault, echo, stack or foreign redirect, and keeps what it had", func(ctx SpecContext) {
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
			told := func() string { return fmt.Sprintf("seed %d, request %d:\n%.2000q\n%v", seed, n, a.wire(), answer) }
			Expect(err).NotTo(HaveOccurred(), told)
			Expect(s.complaint(a, answer)).To(BeEmpty(), told)
			statuses[answer.StatusCode]++
		}
		AddReportEntry("statuses", statuses, ReportEntryVisibilityFailureOrVerbose)
		Expect(statuses).To(And(HaveKey(200), HaveKey(303), HaveKey(400), HaveKey(401), HaveKey(403), HaveKey(404), HaveKey(405), HaveKey(415)))
		s.renew(ctx)
		Expect(s.client.Token(ctx, s.client.Refresh(first.Refresh)).StatusCode).To(Equal(http.StatusOK))
		Expect(s.Log.String()).NotTo(Or(ContainSubstring(`"level":"ERROR"`), ContainSubstring("panic"), ContainSubstring(s.Token)))
	})
})

// scanner speaks the protocol badly. What it knows is renewed from time to time, because some of its requests are right.
type scanner struct {
	*World
	chance *rand.Rand
	client *Client

	kept        string // a code that no request names
	code        string
	ticket      string
	revocable   Tokens
	refreshable Tokens
	access      string
}

// renew shows that a right exchange still succeeds, and lets enough time pass for the guesses to be forgotten.
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

// send writes the request as it is and reads what comes back.
func (s *scanner) send(a attempt) (Response, error) {
	wire, err := net.Dial("tcp", strings.TrimPrefix(s.Issuer, "http://"))
	if err != nil {
		return Response{}, err
	}
	defer func() { _ = wire.Close() }()
	if err := wire.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return Response{}, err
	}
	_, _ = io.WriteString(wire, a.wire()) // the answer may come before the end
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

// read takes only the beginning of a stream, which has no end. A server may hang up on a request that it has not read to its end.
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

// marker would be an element, if anything wrote it as it is.
const marker = `zqx9"'><zqx9>`

// insides match nothing that could stand in a sealed ticket by chance.
var insides = regexp.MustCompile(`goroutine \d|\.go:\d|runtime error|panic[: ]|SQLITE_|sqlite[.: ]|gorm[.:/]|no such table|stack trace`)

// complaint says what is wrong with an answer; nothing, as a rule.
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
	case (target != "" || answer.StatusCode/100 == 3) && !(answer.StatusCode == http.StatusSeeOther && s.verified(target)):
		return "a redirect to " + target
	case media == "application/json" && a.method != http.MethodHead && answer.StatusCode != http.StatusPartialContent && !json.Valid([]byte(answer.Text)):
		return "no JSON"
	case media == "text/html" && !strings.Contains(answer.Header.Get("Content-Security-Policy"), "default-src 'none'"):
		return "a page that may do anything"
	case echoes(answer, media):
		return "an echo in the body"
	}
	for name, values := range answer.Header {
		if name != "Location" && strings.Contains(strings.Join(values, ""), "zqx9") {
			return "an echo in the header " + name
		}
	}
	return ""
}

// echoes lets input appear in the strings of JSON-RPC only.
func echoes(answer Response, media string) bool {
	rpc := media == "application/json" && strings.Contains(answer.Text, `"jsonrpc"`)
	return !rpc && strings.Contains(answer.Text, "zqx9")
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
