package service

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/nats"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
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

// checkBus checks the URLs of NATS servers. Its error does not repeat them, because they may hold a
// password.
func (c Config) checkBus() error {
	if c.Bus == "" {
		return nil
	}
	for address := range strings.SplitSeq(c.Bus, ",") {
		at, err := url.Parse(strings.TrimSpace(address))
		if err != nil || !slices.Contains([]string{"nats", "tls"}, at.Scheme) || at.Host == "" || at.Fragment != "" ||
			strings.Contains(at.EscapedPath(), "@") {
			return oauth.NewMistake("%s is not the URL of a NATS server: write nats://host:4222, or tls://host:4222, "+
				"with %%2F for a slash in the password, and so on", oauth.Field("Bus"))
		}
	}
	return nil
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
