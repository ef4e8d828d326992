package server

import (
	"errors"
	"net/netip"
	"strings"

	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
)

// networkItem is a list item that holds a network or a single address.
var networkItem = settings.Item[netip.Prefix]{
	Parse: func(written string) (netip.Prefix, error) {
		if address, err := netip.ParseAddr(written); err == nil && address.Zone() == "" {
			address = address.Unmap()
			return netip.PrefixFrom(address, address.BitLen()), nil
		}
		network, err := netip.ParsePrefix(written)
		if err == nil && network.Addr().Is4In6() { // addresses are unmapped before they are compared
			err = errors.New("an IPv4 network is written as one")
		}
		return network, err
	},
	Format:   netip.Prefix.String,
	Expected: "networks such as 10.0.0.0/8, or addresses",
}

var hostItem = settings.Item[string]{
	Parse: func(host string) (string, error) {
		if host == "" || strings.ContainsAny(host, "/:@?# *") {
			return "", errors.New("it is not a host name")
		}
		return strings.ToLower(host), nil
	},
	Format:   strings.Clone,
	Expected: "host names without scheme, port and path, such as claude.ai",
}

// scopeItem is a scope in one line. Names are separated by spaces, which no scope contains (RFC 6749 §3.3).
var scopeItem = settings.Item[oauth.Scope]{
	Parse: func(line string) (oauth.Scope, error) {
		names, description, _ := strings.Cut(line, " = ")
		words := strings.Fields(names)
		if len(words) == 0 {
			return oauth.Scope{}, errors.New("it has no name")
		}
		return oauth.Scope{Name: words[0], Implies: words[1:], Description: strings.TrimSpace(description)}, nil
	},
	Format: func(scope oauth.Scope) string {
		line := strings.Join(append([]string{scope.Name}, scope.Implies...), " ")
		if scope.Description != "" {
			line += " = " + scope.Description
		}
		return line
	},
	Expected: "scopes such as \"articles:write articles:read = Change articles\"",
}
