package guard

import (
	"net/http"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/uri"
)

// corsHeaders is the beginning of Access-Control-Allow-Headers.
const corsHeaders = "Authorization, Content-Type, Accept, Last-Event-ID, MCP-Protocol-Version, Mcp-Session-Id, " +
	"Mcp-Method, Mcp-Name"

// gate refuses requests of web pages at other origins. A server on loopback also refuses other Host
// headers, against DNS rebinding; a public server accepts any, because many proxies replace the
// header.
type gate struct {
	loopback       bool
	host           string // of the resource
	hosts, origins map[string]bool
	anyLoopback    bool   // of the origins
	headers        string // Access-Control-Allow-Headers
}

func newGate(o Options) gate {
	g := gate{hosts: map[string]bool{}, origins: map[string]bool{},
		headers: strings.Join(append([]string{corsHeaders}, o.PassedHeaders...), ", ")}
	for _, address := range []string{o.Issuer, o.Resource.String()} {
		origin, _ := uri.SplitOrigin(address)
		_, host, _ := strings.Cut(origin, "://")
		g.origins[strings.ToLower(origin)] = true
		g.loopback, g.host = isLoopback(host), host // those of the resource remain
	}
	for _, host := range o.AllowedHosts {
		g.hosts[hostKey(host)] = true
	}
	for _, origin := range o.AllowedOrigins {
		if origin == LoopbackOrigins {
			g.anyLoopback = true
			continue
		}
		g.origins[strings.ToLower(origin)] = true
	}
	return g
}

// hostKey returns the host in lower case and without a default port, which proxies may add.
func hostKey(host string) string {
	return strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(host), ":443"), ":80")
}

func (g gate) allowsHost(host string) bool {
	return !g.loopback || host == g.host || isLoopback(host) || g.hosts[hostKey(host)] ||
		g.hosts[hostKey(uri.HostOf(host))]
}

func isLoopback(host string) bool {
	return uri.IsLoopbackOrigin("http://" + strings.ToLower(host))
}

// admits returns false for a request that it has answered: a refused one or a preflight request.
func (g gate) admits(w http.ResponseWriter, r *http.Request) bool {
	w.Header().Add("Vary", "Origin")
	origins := r.Header["Origin"]
	foreign := slices.ContainsFunc(origins, func(origin string) bool {
		origin = strings.ToLower(origin)
		return !g.origins[origin] && !(g.anyLoopback && uri.IsLoopbackOrigin(origin))
	})
	if foreign || !g.allowsHost(r.Host) {
		attempt.From(r.Context()).
			RefuseAt(attempt.Call, oauth.Refuse(oauth.InvalidRequest, "G1", "this host or origin is not allowed"))
		message.WriteError(w, http.StatusForbidden, "Forbidden: this host or origin is not allowed")
		return false
	}
	if len(origins) > 0 {
		w.Header().Set("Access-Control-Allow-Origin", origins[0])
		w.Header().Set("Access-Control-Expose-Headers", "WWW-Authenticate, Mcp-Session-Id, Retry-After")
	}
	if r.Method != http.MethodOptions {
		return true
	}
	allowed := []string{g.headers}
	for requested := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		if name := strings.TrimSpace(requested); strings.HasPrefix(strings.ToLower(name), "mcp-param-") &&
			isToken68(name) {
			allowed = append(allowed, name)
		}
	}
	w.Header().Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	w.Header().Set("Access-Control-Allow-Headers", strings.Join(allowed, ", "))
	w.WriteHeader(http.StatusNoContent)
	return false
}
