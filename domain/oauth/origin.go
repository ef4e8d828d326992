package oauth

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// CheckPages reports every origin of web pages that no browser sends and every host that no client asks for, because such an entry would
// let nobody in.
func CheckPages(origins, hosts []string) error {
	var mistakes []error
	for _, origin := range origins {
		if err := checkOrigin(origin); err != nil {
			mistakes = append(mistakes, NewMistake("%s has %q: %s", Field("WithAllowedOrigins"), origin, err))
		}
	}
	for _, host := range hosts {
		if err := CheckHost(host); err != nil {
			mistakes = append(mistakes, NewMistake("%s has %q: %s", Field("WithAllowedHosts"), host, err))
		}
	}
	return errors.Join(mistakes...)
}

func checkOrigin(origin string) error {
	switch {
	case origin == "*":
		return errors.New("it would let every web page in: name each origin, as scheme://host or scheme://host:port")
	case strings.Contains(origin, "*"):
		return errors.New("it is a pattern: name each origin, as scheme://host or scheme://host:port")
	case origin == "null":
		return errors.New(`it is the origin of sandboxed frames and local files, which any page can have: serve the page under an address of its own`)
	case !printable(origin):
		return errors.New("write it as browsers send it, in ASCII (xn--…) and without spaces")
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil {
		return errors.New("write scheme://host or scheme://host:port, for example http://localhost:6274")
	}
	if sent := comparableForm(u.Scheme + "://" + strings.TrimSuffix(u.Host, ":")); sent != origin {
		return fmt.Errorf("browsers send an origin without path and default port, in lower case: write %q", sent)
	}
	return nil
}

// CheckHost finds what is wrong with a host that requests are to name.
func CheckHost(host string) error {
	switch {
	case strings.Contains(host, "*"):
		return errors.New("it is a pattern: name each host, as host or host:port")
	case host == "", strings.ContainsAny(host, "/@?#"), !printable(host):
		return errors.New("write host or host:port, without scheme and path")
	}
	return nil
}
