package program

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pasteport/pasteport/adapters/mcp/gateway/program/process"
	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

// session is a session and its process. It is a session of the registry, which ends it with its
// grant, for a newer one, or at the shutdown.
type session struct {
	id       string
	upstream *Upstream
	grant    string
	person   string       // whose memory for bodies its messages use
	host     oauth.Digest // of the host token, whose values are in the environment
	output   *output
	child    *process.Process
	ended    chan struct{}

	numbers message.Sequence // of the calls

	input sync.Mutex // serializes the messages to the program

	mu        sync.Mutex
	cause     error // of the end
	revision  string
	calls     map[int64]*call // of the client, without an answer, by their number
	streams   map[string]*eventStream
	listening *eventStream // for the messages that belong to no call
}

// call is a request of the client.
type call struct {
	id     message.ID
	stream *eventStream
	number int64 // in the order of the calls
}

// start registers a session and starts its process.
func (u *Upstream) start(r *http.Request, sender oauth.Caller, host oauth.HostToken) (*session, error) {
	if !u.mayStart(sender.Subject) {
		return nil, failed(http.StatusServiceUnavailable,
			"U25", "was started too often for this person: try again later", nil)
	}
	values, err := u.config.Values(host)
	if err != nil {
		return nil, err
	}
	program, hasKey, err := u.programFor(values)
	if err != nil {
		return nil, failed(http.StatusBadGateway, "U23", "cannot get the key of this connection", err)
	}
	s := &session{
		id:        rand.Text(),
		upstream:  u,
		grant:     sender.Grant,
		person:    sender.Subject,
		host:      hostOf(r, host),
		ended:     make(chan struct{}),
		calls:     map[int64]*call{},
		streams:   map[string]*eventStream{},
		listening: new(eventStream),
	}
	s.output = &output{session: s, hasKey: hasKey, limit: rate.NewLimiter(10, 100)} // 10 lines a second, 100 at once
	if !u.registry.AddSession(s, &sender) {
		return nil, failed(http.StatusServiceUnavailable, "U25",
			"cannot be started, because the connection has ended or the gateway is shutting down", nil)
	}
	if err := s.run(r, program); err != nil {
		u.registry.RemoveSession(s.id)
		if errors.Is(err, errClosed) {
			return nil, failed(http.StatusServiceUnavailable, "U24", "was ended", err)
		}
		u.failure.Store(&err)
		return nil, failed(http.StatusBadGateway, "U9", "cannot be started", err)
	}
	return s, nil
}

const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// programFor returns the program with the key of a person in its environment, and a function that
// reports whether a text contains the key.
func (u *Upstream) programFor(values credential.Values) (process.Program, func(text string) bool, error) {
	rendered, err := u.environment.Render(values)
	if err != nil {
		return process.Program{}, nil, err
	}
	variables := rendered.Environment()
	if !slices.Contains(u.environment.Variables(), "PATH") { // scripts such as npx look for their interpreter in it
		variables = append(variables, "PATH="+filepath.Dir(u.path)+string(filepath.ListSeparator)+systemPath)
	}
	return process.Program{
		Path:    u.path,
		Args:    u.address.Args,
		Dir:     cmp.Or(u.address.Dir, string(filepath.Separator)), // where other users cannot place files
		Env:     variables,
		Memory:  u.config.Memory,
		CPUTime: time.Hour,
	}, u.environment.Finder(values).Finds, nil
}

// run starts the process, unless the session has ended since it was registered.
func (s *session) run(r *http.Request, program process.Program) error {
	u := s.upstream
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause != nil || r.Context().Err() != nil { // the registry ends responses and sessions together
		return errClosed
	}
	_ = u.events.Open(r.Context(), s.id, "") // never fails
	child, err := process.Start(program, s.output.logger("stderr"))
	if err != nil {
		_ = u.events.SessionClosed(r.Context(), s.id) // never fails
		return err
	}
	s.child = child
	u.config.Logger.Info("started the program of a session", "session", s.label(), "grant", s.grant, "rule", "U22")
	go s.pump() //nolint:gosec // it outlives the request
	return nil
}

// label names the session in the log. It is a part of the id before it is sealed, which no client
// has.
func (s *session) label() string { return s.id[:8] }

// ID returns the id of the session in this process.
func (s *session) ID() string { return s.id }

// End ends the session for a reason of the registry.
func (s *session) End(cause error) { s.end(fmt.Errorf("%w: %w", errClosed, cause)) }

func (s *session) hasEnded() bool { return s.endedBy() != nil }

func (s *session) endedBy() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// end ends the process, answers the open calls with an error, and ends the streams. Only the first
// cause counts.
func (s *session) end(cause error) {
	s.mu.Lock()
	if s.cause != nil {
		s.mu.Unlock()
		return
	}
	s.cause = cause
	calls := s.calls
	s.calls = map[int64]*call{}
	s.mu.Unlock()
	if s.child == nil {
		return
	}
	s.child.End()
	s.upstream.config.Logger.Info("ended the program of a session",
		"session", s.label(), "grant", s.grant, "reason", s.output.quote(cause), "rule", "U24")
	for _, c := range calls {
		if !c.stream.isInitial { // a failed initialize gets an HTTP status instead
			text := "The session with the MCP server program behind this gateway has ended: " + cause.Error()
			s.send(c.stream, errorAnswer(c.id, text), true)
		}
	}
	close(s.ended)
}

// pump passes on the messages of the program until its end.
func (s *session) pump() {
	u := s.upstream
	memory := u.options.Bodies.Reserve(s.person)
	err := readMessages(s.child, &memory, s.route, s.output.logger("stdout"))
	if errors.Is(err, errLongMessage) || errors.Is(err, errNoMemory) {
		s.end(err)
	}
	s.child.End()
	<-s.child.Done()
	if err := s.child.Err(); err != nil {
		s.end(fmt.Errorf("the program has ended: %w", err))
	}
	s.end(errors.New("the program has ended: exit status 0")) // only the first cause counts
	_ = s.child.Close()
	_ = u.events.SessionClosed(context.Background(), s.id) // never fails, and removes s from the registry
}

// tell sends a message to the program.
func (s *session) tell(m message.Message) {
	s.input.Lock()
	_, err := s.child.Write(append(m.Encode(), '\n'))
	s.input.Unlock()
	if err != nil && !s.hasEnded() {
		select { // a program that has just exited is the likelier reason
		case <-s.child.Done():
		case <-s.ended:
		case <-time.After(2 * time.Second): // longer than it takes to notice that a program has exited
			s.end(errInput)
		}
	}
}
