package features_test

import (
	"bufio"
	"context"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// patience is a timeout for slow machines; the awaited events normally happen immediately.
const patience = time.Minute

// Event is a server-sent event.
type Event struct{ Name, Data string }

// events reads events until the end, and skips events without data, which only set the id to resume
// from.
func events(from io.Reader) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		var event Event
		for lines := bufio.NewScanner(from); lines.Scan(); {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch {
			case field == "event":
				event.Name = value
			case field == "data":
				event.Data = value
			case lines.Text() != "": // an id, or a comment
			case event.Data != "" && !yield(event):
				return
			default:
				event = Event{}
			}
		}
	}
}

// Stream is an open response; Events is closed at its end.
type Stream struct {
	*http.Response
	Events chan Event
}

// Follow opens a stream, which ends with the request's context at the latest.
func Follow(r *http.Request) *Stream {
	GinkgoHelper()
	answer, err := noRedirects.Do(r)
	Expect(err).NotTo(HaveOccurred())
	Expect(answer.StatusCode).To(Equal(http.StatusOK))
	Expect(answer.Header.Get("Content-Type")).To(HavePrefix("text/event-stream"))
	s := &Stream{answer, make(chan Event)}
	go s.read(r.Context())
	return s
}

func (s *Stream) read(ctx context.Context) {
	defer close(s.Events)
	defer func() { _ = s.Body.Close() }()
	for event := range events(s.Body) {
		select {
		case s.Events <- event:
		case <-ctx.Done():
			return
		}
	}
}

// Next returns the data of the next event, which must have this name.
func (s *Stream) Next(name string) string {
	GinkgoHelper()
	var event Event
	Eventually(s.Events).WithTimeout(patience).Should(Receive(&event))
	Expect(event.Name).To(Equal(name))
	return event.Data
}
