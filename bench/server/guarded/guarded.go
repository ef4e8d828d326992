// Package guarded is a site with Pasteport built in.
package guarded

import (
	"crypto/x509"
	"errors"
	"net/http"
	"path/filepath"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bench/load"
	"github.com/pasteport/pasteport/bench/server"
	"github.com/pasteport/pasteport/bench/server/greeter"
	"github.com/pasteport/pasteport/bench/server/onebyone"
	"github.com/pasteport/pasteport/bench/server/site"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Servers are the variants of the site.
var Servers = map[string]server.Open{
	"pasteport":            pasteport{furnished: true}.open,
	"pasteport-bare":       pasteport{}.open,
	"pasteport-tools":      pasteport{tools: true}.open,
	"pasteport-unguarded":  pasteport{tools: true, unguarded: true}.open,
	"pasteport one by one": pasteport{furnished: true, oneByOne: true}.open,
}

// answer is the common handler of all servers.
func answer(w http.ResponseWriter, r *http.Request, _ oauth.Caller) { server.Answer(w, r) }

// pasteport is a site with Pasteport built in, as README.md shows it.
type pasteport struct {
	furnished bool // with the middleware of a site
	tools     bool // protects the SDK's server, not the common handler
	unguarded bool // the SDK's own handlers respond, in the same process
	oneByOne  bool // one transaction per grant
}

func (p pasteport) open(order server.Order, address string) (server.Site, error) {
	store, err := p.openStore(order)
	if err != nil {
		return server.Site{}, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(order.Roots)
	authz, err := bootstrap.NewOAuthServer(oauth.Config{
		Issuer:               address,
		AllowLoopbackIssuer:  true,
		AllowLoopbackClients: true, // all servers are on loopback
		VerifyBearer:         load.IsHostToken,
		Logger:               site.Quiet(),
	}, store, bootstrap.WithRootCAs(roots))
	if err != nil {
		return server.Site{}, errors.Join(err, store.Close())
	}
	protected := bootstrap.Guard(answer, bootstrap.WithOAuth(authz))
	if p.tools {
		protected = bootstrap.NewMCPServer(greeter.New(), bootstrap.WithOAuth(authz))
	}
	e := site.NewEcho()
	if p.furnished {
		site.Furnish(e)
	}
	end := func() error {
		protected.Drain()
		authz.Close()
		return store.Close()
	}
	handler := http.Handler(e)
	if p.unguarded {
		handler = site.With(greeter.Handler(), e)
	}
	return server.Site{Handler: handler, Close: end}, protected.Register(e)
}

// store is an oauth.Store that can be closed.
type store interface {
	oauth.Store
	Close() error
}

func (p pasteport) openStore(order server.Order) (store, error) {
	file := filepath.Join(order.Dir, "oauth.db")
	switch {
	case order.Database != "":
		return persistence.OpenServer(order.Database,
			persistence.ServerOptions{SecretFile: filepath.Join(order.Dir, "secret")})
	case p.oneByOne:
		return onebyone.Open(file)
	}
	return persistence.OpenSQLite(file)
}
