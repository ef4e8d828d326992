package service

import (
	"context"
	"time"

	"github.com/pasteport/pasteport/adapters/nats"
	"github.com/pasteport/pasteport/bootstrap/settings"
)

// settleLimit bounds the wait for requests of other replicas when the service stops.
const settleLimit = 5 * time.Second

func (c *Config) replicas() settings.Group {
	return settings.Group{Title: "Replicas", Settings: append(c.Database.settings(),
		settings.Secret("bus", &c.Bus,
			"nats:// or tls:// URLs of the NATS servers that connect the replicas' sessions, separated by commas; "+
				"not needed for a single process or a gateway").
			Example("nats://pasteport:a-long-random-text@nats.internal:4222"),
	)}
}

func (c Config) checkBus() error {
	if c.Bus == "" {
		return nil
	}
	return nats.Check(c.Bus)
}

// openBus connects to the other replicas. A gateway has no bus: its sessions belong to the
// upstream.
func (s *Service) openBus(config Config) (err error) {
	if config.Bus == "" || config.IsGateway() {
		return nil
	}
	s.bus, err = nats.Open(config.Bus, config.Logger)
	return err
}

// leave waits for the requests of other replicas and closes the bus.
func (s *Service) leave() {
	if s.bus == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleLimit)
	defer cancel()
	for _, server := range s.servers {
		server.WaitForReplicas(ctx)
	}
	s.bus.Close()
}
