package upstream

import (
	"fmt"
	"net/http"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

// maxAddresses bounds the upstreams of a Router, each with its own connections and circuit breaker.
const maxAddresses = 256

// Router forwards each request to the upstream at the address that the person has entered.
type Router struct {
	target    credential.Target
	open      func(url string) (*Upstream, error)
	opening   sync.Mutex
	upstreams *lru.Cache[string, *Upstream]
}

// NewRouter returns a Router that opens an upstream with the options for each address. The options
// must be checked; their URL is not used.
func NewRouter(target credential.Target, o Options) *Router {
	upstreams, _ := lru.New[string, *Upstream](maxAddresses) // fails only for a size below one
	all := newJars()
	open := func(url string) (*Upstream, error) {
		o := o
		o.URL = url
		return newUpstream(o, all)
	}
	return &Router{target: target, open: open, upstreams: upstreams}
}

// Forward is Upstream.Forward. It returns oauth.ErrUnknownBearer for an address at a host that is
// not listed any more.
func (r *Router) Forward(w http.ResponseWriter, request *http.Request, body []byte, sender oauth.Caller,
	host oauth.HostToken) error {
	to, err := r.upstreamOf(host)
	if err != nil {
		return err
	}
	return to.Forward(w, request, body, sender, host)
}

// Deliver is Upstream.Deliver, with the errors of Forward.
func (r *Router) Deliver(w http.ResponseWriter, request *http.Request, body []byte, sender oauth.Caller,
	host oauth.HostToken) error {
	to, err := r.upstreamOf(host)
	if err != nil {
		return err
	}
	return to.Deliver(w, request, body, sender, host)
}

func (r *Router) upstreamOf(host oauth.HostToken) (*Upstream, error) {
	url, allowed := r.target.URL(host.Values())
	if !allowed {
		return nil, oauth.ErrUnknownBearer
	}
	return r.at(url)
}

// at returns the upstream at a URL.
func (r *Router) at(url string) (*Upstream, error) {
	r.opening.Lock()
	defer r.opening.Unlock()
	if to, found := r.upstreams.Get(url); found {
		return to, nil
	}
	to, err := r.open(url)
	if err != nil {
		return nil, fmt.Errorf("opening the upstream of a person: %w", err)
	}
	r.upstreams.Add(url, to)
	return to, nil
}
