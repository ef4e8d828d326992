package client

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/uri"
)

const (
	minIDLength = 12
	maxIDLength = 2048
)

// ParseID checks the raw client_id, before any URL parser touches it, and refuses with
// MalformedClientID.
func (r *Rules) ParseID(raw string) (oauth.ClientID, error) {
	if len(raw) <= maxIDLength && (r.isRegistered(raw) || r.hosted[raw] != nil) {
		return oauth.RestoreClientID(raw), nil
	}
	return r.ParseURL(raw)
}

// ParseURL is ParseID for a URL that this server can fetch, which is never its own.
func (r *Rules) ParseURL(raw string) (oauth.ClientID, error) {
	refuse := func(rule, why string) (oauth.ClientID, error) {
		return oauth.ClientID{}, oauth.Refuse(oauth.MalformedClientID, rule, why)
	}
	isHTTP := strings.HasPrefix(raw, "http://")
	switch {
	case len(raw) > maxIDLength:
		return refuse("C1", "the client_id has more than 2048 bytes")
	case !uri.Printable(raw), strings.Contains(raw, `\`):
		return refuse("C1", "the client_id has a character that URLs cannot have")
	case !strings.HasPrefix(raw, "https://") && !(isHTTP && r.config.AllowLoopbackClients && uri.IsLoopback(raw)):
		return refuse("C1", "the client_id must be the https URL of a metadata document")
	case len(raw) < minIDLength:
		return refuse("C1", "the client_id is too short for the https URL of a metadata document")
	case strings.Contains(raw, "#"):
		return refuse("C5", "the client_id has a fragment")
	}
	authority := uri.Authority(raw)
	_, rest, _ := strings.Cut(raw, "://")
	path, _, _ := strings.Cut(strings.TrimPrefix(rest, authority), "?")
	switch {
	case authority == "", strings.Contains(authority, "@"):
		return refuse("C2", "the client_id has no host or names a user")
	case path == "":
		return refuse("C3", "the client_id has no path")
	case uri.HasDotSegment(path):
		return refuse("C4", "the client_id has a dot segment in its path")
	}
	if err := r.checkAuthority(authority); err != nil {
		return oauth.ClientID{}, err
	}
	if u, err := url.Parse(raw); err != nil || u.String() != raw { // the fetch would be of another URL
		return refuse("C10", "the client_id is not a well-formed URL")
	}
	return oauth.RestoreClientID(raw), nil
}

const base64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// isRegistered reports whether raw has the form of an id that Register returns. Such an id is on
// this server's own host, and is never fetched.
func (r *Rules) isRegistered(raw string) bool {
	box, found := strings.CutPrefix(raw, r.registeredPrefix())
	return found && box != "" && strings.Trim(box, base64URL) == ""
}

// checkAuthority checks host and port. It also refuses the host of this server, so that the server
// does not fetch from itself.
func (r *Rules) checkAuthority(authority string) error {
	host, port := uri.SplitPort(authority)
	ownHost, ownPort := uri.SplitPort(uri.Authority(r.config.Issuer))
	isPort := func(allowed uint16) bool { return strconv.Itoa(int(allowed)) == port }
	isOwn := strings.EqualFold(host, ownHost)
	if r.config.AllowLoopbackClients { // in development, any but this server's port on this computer
		isOwn = ownHost != "" && uri.IsLoopbackHost(host) && port == ownPort
	} else if port != "" && port != "443" && !slices.ContainsFunc(r.config.ClientIDPorts, isPort) ||
		strings.HasSuffix(authority, ":") {
		return oauth.Refuse(oauth.MalformedClientID, "C7", "the client_id names a port that is not allowed here")
	} else if !publicHostName(host) {
		return oauth.Refuse(oauth.MalformedClientID, "C8", "the client_id's host is not a public DNS name")
	}
	if isOwn {
		return oauth.Refuse(oauth.MalformedClientID, "C9", "the client_id is on this server's own host")
	}
	return nil
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
