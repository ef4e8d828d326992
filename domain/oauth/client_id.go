package oauth

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// ClientID is the raw URL of a client's metadata document. It is compared and stored as it was
// sent, without normalization.
type ClientID struct{ raw, authority string }

// ClientIDRules are the rules for client_id URLs that an operator may relax.
type ClientIDRules struct {
	Ports []uint16 // besides the default port; nil allows only 443
	// The issuer's own host, with its port if it has one, so that this server does not fetch from
	// itself.
	ForbidHost   string
	AllowAnyHost bool     // development only; allows http on this computer too
	Registered   string   // the beginning of the ids of clients that registered themselves; "" for none
	Hosted       []string // the ids of clients whose documents this server publishes
}

const (
	minClientIDLength = 12
	maxClientIDLength = 2048
	httpsPrefix       = "https://"
	httpPrefix        = "http://"
)

// ParseClientID checks the raw string, before any URL parser touches it, and refuses with
// MalformedClientID.
func ParseClientID(raw string, rules ClientIDRules) (ClientID, error) {
	refuse := func(rule, why string) (ClientID, error) { return ClientID{}, Refuse(MalformedClientID, rule, why) }
	rest, schemeAllowed := rules.cutScheme(raw)
	switch {
	case len(raw) > maxClientIDLength:
		return refuse("C1", "the client_id has more than 2048 bytes")
	case !printable(raw), strings.Contains(raw, `\`):
		return refuse("C1", "the client_id has a character that URLs cannot have")
	case rules.isRegistered(raw), slices.Contains(rules.Hosted, raw):
		return RestoreClientID(raw), nil
	case !schemeAllowed:
		return refuse("C1", "the client_id must be the https URL of a metadata document")
	case len(raw) < minClientIDLength:
		return refuse("C1", "the client_id is too short for the https URL of a metadata document")
	case strings.Contains(raw, "#"):
		return refuse("C5", "the client_id has a fragment")
	}
	authority, path, found := splitPath(rest)
	switch {
	case authority == "", strings.Contains(authority, "@"):
		return refuse("C2", "the client_id has no host or names a user")
	case !found:
		return refuse("C3", "the client_id has no path")
	case hasDotSegment(path):
		return refuse("C4", "the client_id has a dot segment in its path")
	}
	if err := rules.checkAuthority(authority); err != nil {
		return ClientID{}, err
	}
	if u, err := url.Parse(raw); err != nil || u.String() != raw { // a URL parser would fetch another URL
		return refuse("C10", "the client_id is not a well-formed URL")
	}
	return ClientID{raw: raw, authority: authority}, nil
}

// RestoreClientID rebuilds a client_id that was accepted before.
func RestoreClientID(raw string) ClientID {
	_, rest, _ := strings.Cut(raw, "://")
	authority, _, _ := splitPath(rest)
	return ClientID{raw: raw, authority: authority}
}

// String returns the URL as it was sent.
func (id ClientID) String() string { return id.raw }

// reconnecting is a parameter that ChatGPT adds to its client_id when a person reconnects.
const reconnecting = "token_endpoint_auth_method=none"

// Published returns the id that the document of the client may have instead of this one: without
// the parameter that the client adds when a person reconnects.
func (id ClientID) Published() ClientID {
	return RestoreClientID(strings.TrimSuffix(strings.TrimSuffix(id.raw, "?"+reconnecting), "&"+reconnecting))
}

// Host returns the host with its port, if it names one.
func (id ClientID) Host() string { return id.authority }

// cutScheme cuts https:// off, or http:// where documents on this computer are allowed.
func (r ClientIDRules) cutScheme(raw string) (rest string, allowed bool) {
	if rest, allowed = strings.CutPrefix(raw, httpsPrefix); allowed {
		return rest, true
	}
	rest, isHTTP := strings.CutPrefix(raw, httpPrefix)
	authority, _, _ := splitPath(rest)
	return rest, isHTTP && r.AllowAnyHost && loopbackHost(HostOf(authority))
}

// splitPath cuts "host:port/path?query" before its path; found is false when it has no path.
func splitPath(rest string) (authority, path string, found bool) {
	end := strings.IndexAny(rest, "/?")
	if end < 0 || rest[end] != '/' {
		return rest, "", false
	}
	path, _, _ = strings.Cut(rest[end:], "?")
	return rest[:end], path, true
}

// dots decodes dots as browsers do before they resolve dot segments.
var dots = strings.NewReplacer("%2e", ".", "%2E", ".")

func hasDotSegment(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(segment string) bool {
		segment = dots.Replace(segment)
		return segment == "." || segment == ".."
	})
}

const base64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// isRegistered reports whether the id has the form of one that RegisterClient has returned. It is
// on this server's own host, and never fetched.
func (r ClientIDRules) isRegistered(raw string) bool {
	box, found := strings.CutPrefix(raw, r.Registered)
	return r.Registered != "" && found && box != "" && strings.Trim(box, base64URL) == ""
}

func (r ClientIDRules) checkAuthority(authority string) error {
	host, port := splitPort(authority)
	ownHost, ownPort := splitPort(r.ForbidHost)
	isPort := func(allowed uint16) bool { return strconv.Itoa(int(allowed)) == port }
	switch {
	case r.AllowAnyHost && ownHost != "" && loopbackHost(host) && port == ownPort:
		return refuseOwnHost()
	case r.AllowAnyHost:
		return nil
	case port != "" && port != "443" && !slices.ContainsFunc(r.Ports, isPort), strings.HasSuffix(authority, ":"):
		return Refuse(MalformedClientID, "C7", "the client_id names a port that is not allowed here")
	case !publicHostName(host):
		return Refuse(MalformedClientID, "C8", "the client_id's host is not a public DNS name")
	case strings.EqualFold(host, ownHost):
		return refuseOwnHost()
	}
	return nil
}

func refuseOwnHost() error {
	return Refuse(MalformedClientID, "C9", "the client_id is on this server's own host")
}

func splitPort(authority string) (host, port string) {
	colon := strings.LastIndexByte(authority, ':')
	if colon < 0 || strings.HasSuffix(authority, "]") {
		return authority, ""
	}
	return authority[:colon], authority[colon+1:]
}

// specialNames are the suffixes that never name a public host (RFC 6761, RFC 6762, RFC 8375).
var specialNames = []string{"localhost", "local", "internal", "home.arpa", "onion", "test", "invalid"}

// publicHostName reports whether host can be a public DNS name: letters, digits and hyphens in two
// labels or more, and no form of an IP address.
func publicHostName(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil || len(host) > 253 {
		return false
	}
	host = strings.ToLower(host)
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(label, "-") != label ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	last := labels[len(labels)-1]
	if len(labels) < 2 || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return false
	}
	return !slices.ContainsFunc(specialNames, func(name string) bool {
		return host == name || strings.HasSuffix(host, "."+name)
	})
}

// printable reports whether s has only the bytes 0x21-0x7E.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < 0x21 || r > 0x7e })
}
