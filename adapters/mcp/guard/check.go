package guard

import (
	"errors"
	"fmt"
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
	switch {
	case origin == LoopbackOrigins:
		return nil
	case origin == "*":
		return errors.New("it would allow every web page: name each origin, as scheme://host or scheme://host:port")
	case strings.Contains(origin, "*"):
		return errors.New("it is a pattern: name each origin, as scheme://host or scheme://host:port, or write " +
			"loopback for every port of this computer")
	case origin == "null":
		return errors.New(
			`it is the origin of sandboxed frames and local files, which any page can have: serve the page from its ` +
				`own origin`)
	case strings.ContainsFunc(origin, isUnprintable):
		return errors.New("write it as browsers send it, in ASCII (xn--…) and without spaces")
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil {
		return errors.New("write scheme://host or scheme://host:port, for example http://localhost:6274")
	}
	if sent := sentOrigin(u); sent != origin {
		return fmt.Errorf("browsers send an origin without path and default port, in lower case: write %q", sent)
	}
	return nil
}

// sentOrigin returns the origin of a page at the URL, as browsers send it.
func sentOrigin(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(strings.TrimSuffix(u.Host, ":"))
	return scheme + "://" + strings.TrimSuffix(host, map[string]string{"http": ":80", "https": ":443"}[scheme])
}

// CheckHost returns an error when no request can name the host.
func CheckHost(host string) error {
	switch {
	case strings.Contains(host, "*"):
		return errors.New("it is a pattern: name each host, as host or host:port")
	case host == "", strings.ContainsAny(host, "/@?#"), strings.ContainsFunc(host, isUnprintable):
		return errors.New("write host or host:port, without scheme and path")
	}
	return nil
}

func isUnprintable(r rune) bool { return r <= ' ' || r > '~' }
