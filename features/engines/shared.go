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

// sharedVariable holds the URL at which Share starts servers on demand.
const sharedVariable = "SPECS_ENGINES"

// engine starts servers of one kind, and returns the endpoint of a running one.
type engine struct {
	start func(ctx context.Context, settings ...string) (*Server, error)
	at    func(port int) *Endpoint
	limit string // the setting that permits enough connections for all processes of a run
}

var byName = map[string]engine{
	"PostgreSQL": {Postgres, postgresAt, "max_connections=300"},
	"MariaDB":    {MariaDB, mariaDBAt, "max-connections=300"},
}

// Own starts a server for the caller only, who may stop it and start it again.
func Own(ctx context.Context, name string) (*Server, error) { return byName[name].start(ctx) }

// onDemand is a server that starts at its first use.
type onDemand struct {
	once   sync.Once
	server *Server
	err    error
}

// Share lets this process and its child processes use one server of each engine, which starts at
// the first call of Shared. It returns the environment variable that child processes need; stop
// ends the servers.
func Share() (environment []string, stop func() error, err error) {
	if os.Getenv(sharedVariable) != "" { // the parent process shares them
		return nil, func() error { return nil }, nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("listening for requests to start a database server: %w", err)
	}
	servers := map[string]*onDemand{}
	for name := range byName {
		servers[name] = &onDemand{}
	}
	broker := &http.Server{ReadHeaderTimeout: timeout,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			name := r.URL.Query().Get("engine")
			_ = json.NewEncoder(w).Encode(servers[name].address(name))
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

// address starts the server unless it runs.
func (s *onDemand) address(name string) sharedAddress {
	s.once.Do(func() { s.server, s.err = byName[name].start(context.Background(), byName[name].limit) })
	if s.err != nil {
		return sharedAddress{Error: s.err.Error()}
	}
	return sharedAddress{Port: s.server.port}
}

// sharedAddress is the answer to a process that needs a server.
type sharedAddress struct {
	Port  int
	Error string
}

var (
	shared   = map[string]*Endpoint{} // servers that this process uses, by name
	sharedMu sync.Mutex
)

// Shared returns the server that all processes of this run use; specs must not stop it.
func Shared(ctx context.Context, name string) (*Endpoint, error) {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if endpoint, found := shared[name]; found {
		return endpoint, nil
	}
	address, err := request(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case address.Error != "":
		return nil, errors.New(address.Error)
	}
	shared[name] = byName[name].at(address.Port)
	return shared[name], nil
}

func request(ctx context.Context, name string) (address sharedAddress, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, os.Getenv(sharedVariable)+"?engine="+name, http.NoBody)
	if err != nil {
		return address, fmt.Errorf("requesting a database server: %w", err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return address, fmt.Errorf("requesting a database server: %w", err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&address); err != nil {
		return address, fmt.Errorf("reading the address of a database server: %w", err)
	}
	return address, nil
}
