package engines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
)

// sharedVariable names the address at which Share starts servers on demand.
const sharedVariable = "SPECS_ENGINES"

// kind is how to start one of the engines, and how to reach one that runs.
type kind struct {
	start func(ctx context.Context, settings ...string) (*Server, error)
	reach func(port int) *Endpoint
	room  string // the setting that lets all processes of a run connect
}

var kinds = map[string]kind{
	"PostgreSQL": {Postgres, postgresAt, "max_connections=300"},
	"MariaDB":    {MariaDB, mariaDBAt, "max-connections=300"},
}

// Own starts a server for the caller alone, who may stop it and start it again.
func Own(ctx context.Context, name string) (*Server, error) { return kinds[name].start(ctx) }

// started is a server that Share has started, once.
type started struct {
	once   sync.Once
	server *Server
	err    error
}

// Share lets this process and those that it starts use one server of each engine, which starts when Shared
// is first called for it. It returns the environment variable that tells other processes, and ends all servers with stop.
func Share() (environment []string, stop func() error, err error) {
	if os.Getenv(sharedVariable) != "" { // the parent process shares them
		return nil, func() error { return nil }, nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("listening for processes that need a database server: %w", err)
	}
	servers := map[string]*started{}
	for name := range kinds {
		servers[name] = &started{}
	}
	broker := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Query().Get("engine")
		answer(w, servers[name].port(name))
	})}
	go func() { _ = broker.Serve(listener) }()
	return []string{sharedVariable + "=http://" + listener.Addr().String()}, func() error {
		err := broker.Shutdown(context.Background())
		for _, s := range servers {
			if s.server != nil {
				err = errors.Join(err, s.server.Close())
			}
		}
		return err
	}, nil
}

// port starts the server unless it runs.
func (s *started) port(name string) sharedServer {
	s.once.Do(func() { s.server, s.err = kinds[name].start(context.Background(), kinds[name].room) })
	switch {
	case errors.Is(s.err, ErrMissing):
		return sharedServer{Missing: true, Error: s.err.Error()}
	case s.err != nil:
		return sharedServer{Error: s.err.Error()}
	}
	return sharedServer{Port: s.server.port}
}

// sharedServer is what a process is told about a server.
type sharedServer struct {
	Port    int
	Missing bool
	Error   string
}

func answer(w http.ResponseWriter, about sharedServer) { _ = json.NewEncoder(w).Encode(about) }

var (
	reached   = map[string]*Endpoint{} // by this process
	reachedMu sync.Mutex
)

// Shared is the server that all processes of this run use and none of them may stop. It returns ErrMissing where the engine is not
// installed.
func Shared(ctx context.Context, name string) (*Endpoint, error) {
	reachedMu.Lock()
	defer reachedMu.Unlock()
	if endpoint, known := reached[name]; known {
		return endpoint, nil
	}
	about, err := ask(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case about.Missing:
		return nil, fmt.Errorf("%w: %s", ErrMissing, about.Error)
	case about.Error != "":
		return nil, errors.New(about.Error)
	}
	reached[name] = kinds[name].reach(about.Port)
	return reached[name], nil
}

func ask(ctx context.Context, name string) (about sharedServer, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, os.Getenv(sharedVariable)+"?engine="+name, http.NoBody)
	if err != nil {
		return about, fmt.Errorf("asking for a database server: %w", err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return about, fmt.Errorf("asking for a database server: %w", err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&about); err != nil {
		return about, fmt.Errorf("reading where the database server is: %w", err)
	}
	return about, nil
}
