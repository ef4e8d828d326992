package guard

import (
	"errors"
	"net/url"
	"strings"

	"github.com/pasteport/pasteport/domain/oauth"
)

// LoopbackOrigins is the entry of Options.AllowedOrigins for the web pages of the person's own
// computer.
const LoopbackOrigins = "loopback"

// The default and the bounds of Options.MaxRequestBody.
const (
	DefaultRequestBody = 4 << 20
	LeastRequestBody   = 64 << 10
	MostRequestBody    = 1 << 30
)

// Check returns an oauth.Mistake for each allowed origin that no browser sends and each allowed
// host that no request can name, because such entries never match, and one for a MaxRequestBody out
// of bounds.
func (o Options) Check() error {
	var mistakes []error
	for _, origin := range o.AllowedOrigins {
		if err := checkOrigin(origin); err != nil {
			mistakes = append(mistakes, oauth.NewMistake("WithAllowedOrigins", "has %q: %s", origin, err))
		}
	}
	for _, host := range o.AllowedHosts {
		if err := CheckHost(host); err != nil {
			mistakes = append(mistakes, oauth.NewMistake("WithAllowedHosts", "has %q: %s", host, err))
		}
	}
	if size := o.MaxRequestBody; size != 0 && (size < LeastRequestBody || size > MostRequestBody) {
		mistakes = append(mistakes, oauth.NewMistake("WithMaxRequestBody", "is %d bytes: choose %d KiB to %d KiB", size,
			LeastRequestBody>>10, MostRequestBody>>10))
	}
	return errors.Join(mistakes...)
}

func checkOrigin(origin string) error {
	u, err := url.Parse(origin)
	if origin == LoopbackOrigins || err == nil && u.Scheme != "" && u.Host != "" && sentOrigin(u) == origin &&
		!strings.Contains(origin, "*") && !strings.ContainsFunc(origin, isUnprintable) {
		return nil
	}
	return errors.New("write scheme://host or scheme://host:port for one origin as browsers send it: in ASCII " +
		"(xn--…) and lower case, without path and default port; or loopback for every port of this computer")
}

// sentOrigin returns the origin of a page at the URL, as browsers send it.
func sentOrigin(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(strings.TrimSuffix(u.Host, ":"))
	return scheme + "://" + strings.TrimSuffix(host, map[string]string{"http": ":80", "https": ":443"}[scheme])
}

// CheckHost returns an error when no request can name the host.
func CheckHost(host string) error {
	if host == "" || strings.ContainsAny(host, "*/@?#") || strings.ContainsFunc(host, isUnprintable) {
		return errors.New("write host or host:port of each host, without scheme, path and pattern")
	}
	return nil
}

func isUnprintable(r rune) bool { return r <= ' ' || r > '~' }
