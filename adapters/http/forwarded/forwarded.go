// Package forwarded finds the address of a client behind reverse proxies.
//
// An Extractor makes an echo.IPExtractor, which starts at the peer of the connection. While the
// address is that of a trusted proxy, it goes to the preceding entry of X-Forwarded-For or
// Forwarded (RFC 7239). It returns the first address along this path that is not a trusted proxy.
package forwarded

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
)

// Extractor reads the client's address. The zero value trusts no proxy and returns the peer's
// address.
type Extractor struct {
	Proxies []netip.Prefix // the networks of the proxies in front
	// Logger gets one warning about an invalid entry, and one about a proxy that is not listed;
	// slog.Default() when nil.
	Logger *slog.Logger
	// Unlisted is called for a request with such a header from another peer; nil for none.
	Unlisted func(peer netip.Addr)
}

// IPExtractor returns the function that Echo calls. The address that it returns has neither port
// nor zone.
func (e Extractor) IPExtractor() echo.IPExtractor {
	proxies := make([]netip.Prefix, len(e.Proxies))
	for i, network := range e.Proxies {
		proxies[i] = network.Masked()
	}
	logger := cmp.Or(e.Logger, slog.Default())
	trusted := func(address netip.Addr) bool {
		return slices.ContainsFunc(proxies, func(network netip.Prefix) bool { return network.Contains(address) })
	}
	var warnInvalid, warnUnlisted sync.Once
	return func(r *http.Request) string {
		peer, ok := parse(r.RemoteAddr)
		if !ok {
			return r.RemoteAddr
		}
		entries := forwardedFor(r.Header)
		if !trusted(peer) && len(entries) > 0 {
			if e.Unlisted != nil {
				e.Unlisted(peer)
			}
			warnUnlisted.Do(func() {
				logger.Warn("a request names the address of its client, but does not come from a trusted proxy: "+
					"if it comes from your proxy, list its network in trusted-proxies; until then its clients share "+
					"the limits of one address", "peer", peer.String())
			})
		}
		address := peer
		for _, entry := range slices.Backward(entries) {
			if !trusted(address) {
				break
			}
			// An invalid entry ends the search at the proxy that wrote it. An empty one is
			// invalid, because the entry before it is from the client.
			next, ok := parse(entry)
			if !ok {
				warnInvalid.Do(func() {
					logger.Warn("cannot parse the client address from a trusted proxy; its clients share the limits "+
						"of the proxy", "proxy", address.String(), "entry", entry[:min(len(entry), maxLogged)])
				})
				break
			}
			address = next
		}
		return address.String()
	}
}

// maxLogged bounds the logged part of an entry, in bytes.
const maxLogged = 64

// forwardedFor returns the entries of X-Forwarded-For or, without one, the for parameters of
// Forwarded, in the order in which the proxies have added them.
func forwardedFor(header http.Header) (entries []string) {
	if values := header[echo.HeaderXForwardedFor]; len(values) > 0 {
		for entry := range strings.SplitSeq(strings.Join(values, ","), ",") {
			entries = append(entries, strings.Trim(entry, whitespace))
		}
		return entries
	}
	if values := header["Forwarded"]; len(values) > 0 {
		for _, element := range split(strings.Join(values, ","), ',') {
			entries = append(entries, parameter(element, "for"))
		}
	}
	return entries
}

const whitespace = " \t"

// parameter returns the value of a parameter of a Forwarded element (RFC 7239 §4) as it is written,
// with its quotes, or "" if there is none.
func parameter(element, name string) string {
	for _, pair := range split(element, ';') {
		key, value, _ := strings.Cut(pair, "=")
		if strings.EqualFold(strings.Trim(key, whitespace), name) {
			return strings.Trim(value, whitespace)
		}
	}
	return ""
}

// split cuts the text at the separators outside of quoted strings. It begins at the end, which is
// the proxy's: a quote that a client has left open before it hides no comma.
func split(text string, separator byte) (parts []string) {
	end, quoted := len(text), false
	for i := len(text) - 1; i >= 0; i-- {
		switch {
		case text[i] == '"' && (i-len(strings.TrimRight(text[:i], `\`)))%2 == 0: // is not escaped
			quoted = !quoted
		case text[i] == separator && !quoted:
			parts, end = append(parts, text[i+1:end]), i
		}
	}
	parts = append(parts, text[:end])
	slices.Reverse(parts)
	return parts
}

// parse reads an address with or without port, brackets, quotes and zone.
func parse(written string) (netip.Addr, bool) {
	if quoted, ok := strings.CutPrefix(written, `"`); ok {
		if written, ok = strings.CutSuffix(quoted, `"`); !ok {
			return netip.Addr{}, false
		}
	}
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(written, "["), "]"))
	if err != nil || strings.HasPrefix(written, "[") != strings.HasSuffix(written, "]") {
		withPort, err := netip.ParseAddrPort(written)
		if err != nil {
			return netip.Addr{}, false
		}
		address = withPort.Addr()
	}
	return address.Unmap().WithZone(""), true
}
