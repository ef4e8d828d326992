package bootstrap

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/http/admin"
	"github.com/pasteport/pasteport/adapters/http/mcp"
	"github.com/pasteport/pasteport/adapters/nats"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
)

// settleLimit is how long a service that stops lets the requests of other replicas finish.
const settleLimit = 5 * time.Second

// Bus carries messages between the replicas of a service; nats.Open makes one.
type Bus = mcp.Bus

// WithBus lets every replica of a service answer every request: one for a session that another replica holds goes there and back over
// the bus (R1). All replicas need the same server secret, and a bus each. Inside a session, tools then see of the headers of a request
// only Accept, Accept-Language, Content-Type, Last-Event-Id, Traceparent, Tracestate, User-Agent, X-Request-Id and those of MCP, on
// every replica. A gateway needs no bus: its sessions are the upstream's.
func WithBus(bus Bus) MCPOption { return func(m *MCPServer) { m.options.Bus = bus } }

func (c *ServiceConfig) replicas() settings.Group {
	return settings.Group{Title: "Replicas", Settings: append(c.Database.settings(),
		settings.Secret("bus", &c.Bus, "nats:// or tls:// URL of the NATS server over which replicas reach each other's sessions, or of several, separated by commas; "+
			"one process alone and a gateway need none").Like("nats://pasteport:a-long-random-text@nats.internal:4222"),
	)}
}

// checkBus finds what is no address of a NATS server; it is not repeated, because it may hold a password.
func (c ServiceConfig) checkBus() error {
	if c.Bus == "" {
		return nil
	}
	for address := range strings.SplitSeq(c.Bus, ",") {
		at, err := url.Parse(strings.TrimSpace(address))
		if err != nil || !slices.Contains([]string{"nats", "tls"}, at.Scheme) || at.Host == "" || at.Fragment != "" || strings.Contains(at.EscapedPath(), "@") {
			return oauth.NewMistake("%s is no URL of a NATS server: write nats://host:4222, or tls://host:4222, with %%2F for a slash of the password, and so on", oauth.Field("Bus"))
		}
	}
	return nil
}

// openBus connects to the other replicas when there may be some.
func (s *Service) openBus(config ServiceConfig) (err error) {
	if config.Bus == "" || config.isGateway() {
		return nil
	}
	s.bus, err = nats.Open(config.Bus, config.Logger)
	return err
}

// throughBus are the options of a server that has other replicas.
func (s *Service) throughBus() []MCPOption {
	if s.bus == nil {
		return nil
	}
	return []MCPOption{WithBus(s.bus)}
}

// leave lets the requests of other replicas finish, and is not to be found afterwards.
func (s *Service) leave() {
	if s.bus == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleLimit)
	defer cancel()
	for _, server := range s.servers {
		server.mounted.Settle(ctx)
	}
	s.bus.Close()
}

// busChecks are tolerated: an outage of the bus is one of every replica, and all of them answer whatever needs no other replica. To be
// taken out of the load balancer together would help nobody.
func (s *Service) busChecks() []admin.Check {
	if s.bus == nil {
		return nil
	}
	return []admin.Check{{Name: "bus", Ask: s.bus.Ping, Tolerated: true}}
}
