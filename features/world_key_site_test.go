package features_test

import (
	"cmp"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// KeySite is a site whose keys each have an answer of the verifier. It counts the questions.
type KeySite struct {
	*ClientSite
	mutex   sync.Mutex
	answers map[string]string
	asked   map[string]int
	fails   bool
	held    chan struct{} // closed once a check of the held key waits
	resume  chan struct{}
	hold    string // key whose next check waits, and is answered by the state after it
}

// NewKeySite starts a site that knows these keys.
func NewKeySite(answers map[string]string) *KeySite {
	GinkgoHelper()
	s := &KeySite{ClientSite: NewClientSite(), answers: map[string]string{}, asked: map[string]int{}}
	maps.Copy(s.answers, answers)
	s.Serve("/token", func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		s.wait(key)
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.asked[key]++
		answer := s.answers[key]
		w.Header().Set("Content-Type", "application/json")
		switch {
		case s.fails:
			w.WriteHeader(http.StatusInternalServerError)
		case answer == "":
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = io.WriteString(w, cmp.Or(answer, "{}"))
	})
	return s
}

// Answer sets the answer about a key; "" means that the site does not know it.
func (s *KeySite) Answer(key, answer string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.answers[key] = answer
}

// Fail lets every check fail, or no more.
func (s *KeySite) Fail(fails bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.fails = fails
}

// Questions returns how often the site was asked about a key.
func (s *KeySite) Questions(key string) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.asked[key]
}

// Hold lets the next check of the key wait.
func (s *KeySite) Hold(key string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.hold, s.held, s.resume = key, make(chan struct{}), make(chan struct{})
}

func (s *KeySite) wait(key string) {
	s.mutex.Lock()
	held, resume, waits := s.held, s.resume, s.hold == key && key != ""
	if waits {
		s.hold = ""
	}
	s.mutex.Unlock()
	if waits {
		close(held)
		<-resume
	}
}

// Verify makes the site the verifier of a service.
func (s *KeySite) Verify(config *service.Config) {
	config.Verification, config.RecheckEvery = overHTTP.configure(s.URL("/token")), time.Minute
}
