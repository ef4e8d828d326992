package client_test

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

var (
	dnsName = regexp.MustCompile(
		`^(?i:[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+(?i:[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)$`)
	lastNumber  = regexp.MustCompile(`(?i)\.([0-9]+|0x[^.]*)$`)
	number      = regexp.MustCompile(`^(0[xX][0-9a-fA-F]*|[0-9]+)$`)
	privateName = regexp.MustCompile(`(?i)(^|\.)(localhost|local|internal|home\.arpa|onion|test|invalid)$`)
)

// FuzzClientID accepts what the reference finds no flaw in, as it is, and shows the host that would
// be asked.
func FuzzClientID(f *testing.F) {
	rules, err := client.NewRules(oauth.Config{Issuer: "https://cms.example", ClientIDPorts: []uint16{8443}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		id, err := rules.ParseID(raw)
		if found := flaw(raw); (err == nil) != (found == "") {
			t.Fatalf("%q: %v, and the reference finds: %s", raw, err, found)
		}
		if err != nil {
			if kind, _ := oauth.KindOf(err); kind != oauth.MalformedClientID {
				t.Fatalf("refused %q as %s", raw, kind)
			}
			return
		}
		if u, _ := url.Parse(raw); u.Host != id.Host() || id.String() != raw || oauth.RestoreClientID(raw) != id {
			t.Fatalf("%q did not stay as it is: %#v", raw, id)
		}
	})
}

// flaw is the reference: it looks at what a URL parser makes of the client_id.
func flaw(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case len(raw) < 12 || len(raw) > 2048 || strings.ContainsFunc(raw, func(r rune) bool {
		return r < 0x21 || r > 0x7e
	}):
		return "length or characters"
	case err != nil || u.String() != raw || strings.ContainsAny(raw, `#\`):
		return "no URL"
	case u.Scheme != "https" || u.Opaque != "" || u.User != nil || u.Path == "":
		return "scheme, user or path"
	}
	for segment := range strings.SplitSeq(u.EscapedPath(), "/") {
		if decoded, err := url.PathUnescape(segment); err != nil || decoded == "." || decoded == ".." {
			return "dot segment"
		}
	}
	return hostFlaw(u)
}

func hostFlaw(u *url.URL) string {
	host := u.Hostname()
	switch {
	case !slices.Contains([]string{"", "443", "8443"}, u.Port()) || strings.HasSuffix(u.Host, ":"):
		return "port"
	case !dnsName.MatchString(host) || len(host) > 253 || privateName.MatchString(host):
		return "no public name"
	case isAddress(host) || lastNumber.MatchString(host):
		return "address"
	case strings.EqualFold(host, "cms.example") && u.Port() != "8443":
		return "our own host"
	}
	return ""
}

// isAddress reads an address as strictly as netip and as loosely as inet_aton: one to four numbers
// in base 8, 10 or 16.
func isAddress(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	parts := strings.Split(host, ".")
	return len(parts) <= 4 && !slices.ContainsFunc(parts, func(part string) bool { return !number.MatchString(part) })
}
