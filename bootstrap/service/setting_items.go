package service

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"time"

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

// durationItem is a duration of a list, in which 7d is 168h.
var durationItem = settings.Item[time.Duration]{
	Parse: func(text string) (time.Duration, error) {
		if days, isDays := strings.CutSuffix(text, "d"); isDays {
			number, err := strconv.ParseUint(days, 10, 16)
			return time.Duration(number) * 24 * time.Hour, err
		}
		return time.ParseDuration(text)
	},
	Format:   settings.FormatDuration,
	Expected: "durations such as 12h or 7d",
}

var portItem = settings.Item[uint16]{
	Parse: func(written string) (uint16, error) {
		port, err := strconv.ParseUint(written, 10, 16)
		if err == nil && port == 0 {
			err = errors.New("it is 0")
		}
		return uint16(port), err
	},
	Format:   func(port uint16) string { return strconv.Itoa(int(port)) },
	Expected: "ports from 1 to 65535",
}

// scopeItem is a scope in one line. Names are separated by spaces, which no scope contains (RFC
// 6749 §3.3).
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

var linkItem = settings.Item[oauth.Link]{
	Parse: func(line string) (oauth.Link, error) {
		name, address, found := strings.Cut(line, " = ")
		if !found {
			return oauth.Link{}, errors.New("it has no URL")
		}
		return oauth.Link{Name: strings.TrimSpace(name), URL: strings.TrimSpace(address)}, nil
	},
	Format:   func(link oauth.Link) string { return link.Name + " = " + link.URL },
	Expected: "links such as \"op_policy_uri = https://cms.example.com/privacy\"",
}
