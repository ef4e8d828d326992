package mcp

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/adapters/http/mcp/jsonrpc"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// What a browser may send and see (G2).
const (
	corsMethods = "GET, POST, DELETE"
	corsHeaders = "Authorization, Content-Type, Accept, Last-Event-ID, MCP-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name"
	corsExposed = "WWW-Authenticate, Mcp-Session-Id, Retry-After"
)

// gate keeps foreign web pages out: other sites by Origin (G1), and on this computer names that were rebound to it by Host. A
// public server takes any Host, because many proxies put their own there.
type gate struct {
	local          bool
	own            string // host
	hosts, origins map[string]bool
	headers        string // that a browser may send
}

func newGate(o Options) gate {
	g := gate{hosts: map[string]bool{}, origins: map[string]bool{}, headers: strings.Join(append([]string{corsHeaders}, o.PassedHeaders...), ", ")}
	for _, uri := range []string{o.Issuer, o.Resource.String()} {
		origin, _ := splitOrigin(uri)
		_, host, _ := strings.Cut(origin, "://")
		g.origins[strings.ToLower(origin)] = true
		g.local, g.own = isLoopback(host), host
	}
	for _, host := range o.AllowedHosts {
		g.hosts[hostKey(host)] = true
	}
	for _, origin := range o.AllowedOrigins {
		g.origins[strings.ToLower(origin)] = true
	}
	return g
}

// hostKey makes a host comparable: proxies may add the default port.
func hostKey(host string) string {
	return strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(host), ":443"), ":80")
}

func (g gate) knows(host string) bool {
	return !g.local || host == g.own || isLoopback(host) || g.hosts[hostKey(host)] || g.hosts[hostKey(nameOf(host))]
}

// isLoopback knows the names under which this computer cannot be anybody else.
func isLoopback(host string) bool {
	return slices.Contains([]string{"localhost", "127.0.0.1", "::1", "[::1]"}, strings.ToLower(nameOf(host)))
}

// nameOf cuts the port off.
func nameOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

// passes answers the requests that go no further, and says so.
func (g gate) passes(w http.ResponseWriter, r *http.Request) bool {
	vary(w.Header())
	origins := r.Header["Origin"]
	foreign := slices.ContainsFunc(origins, func(o string) bool { return !g.origins[strings.ToLower(o)] })
	if foreign || !g.knows(r.Host) {
		trace.From(r.Context()).RefuseAt(trace.Call, oauth.Refuse(oauth.InvalidRequest, "G1", "this host or origin is not allowed"))
		jsonrpc.WriteError(w, http.StatusForbidden, "Forbidden: this host or origin is not allowed")
		return false
	}
	if len(origins) > 0 {
		w.Header().Set("Access-Control-Allow-Origin", origins[0])
		w.Header().Set("Access-Control-Expose-Headers", corsExposed)
	}
	if r.Method == http.MethodOptions {
		g.preflight(w, r)
		return false
	}
	return true
}

// byOrigin is what most answers say, and nobody can append to.
var byOrigin = []string{"Origin"}[:1:1]

func vary(header http.Header) {
	if header["Vary"] != nil {
		header.Add("Vary", "Origin")
		return
	}
	header["Vary"] = byOrigin
}

func (g gate) preflight(w http.ResponseWriter, r *http.Request) {
	allowed := []string{g.headers}
	for requested := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		if name := strings.TrimSpace(requested); strings.HasPrefix(strings.ToLower(name), "mcp-param-") && isToken68(name) {
			allowed = append(allowed, name)
		}
	}
	w.Header().Set("Access-Control-Allow-Methods", corsMethods)
	w.Header().Set("Access-Control-Allow-Headers", strings.Join(allowed, ", "))
	w.WriteHeader(http.StatusNoContent)
}
