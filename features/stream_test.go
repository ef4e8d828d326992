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

// patience is for slow machines; what is waited for happens at once.
const patience = time.Minute

// Event is a server-sent event.
type Event struct{ Name, Data string }

// events reads them until the end; those that carry nothing only tell where a stream could be resumed.
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

// Stream is an answer that is being read; Events is closed at its end.
type Stream struct {
	*http.Response
	Events chan Event
}

// Follow opens a stream, which ends at the latest with the request's context.
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

// Next is the data of the next event, which has to have this name.
func (s *Stream) Next(name string) string {
	GinkgoHelper()
	var event Event
	Eventually(s.Events).WithTimeout(patience).Should(Receive(&event))
	Expect(event.Name).To(Equal(name))
	return event.Data
}
