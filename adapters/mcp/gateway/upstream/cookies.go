package upstream

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/pasteport/pasteport/application/cache"
)

const (
	maxSessions     = 16384 // with cookies
	maxCookies      = 50    // of a session
	maxSessionBytes = 4096  // of the cookies of a session
)

// cookies keeps the cookies of the sessions of an upstream, by which a balancer in front of it
// finds the server of a session. They stay in this process: clients never get them. Without them,
// as after a restart, the balancer chooses again.
type cookies struct {
	of    *url.URL
	mu    sync.Mutex // so that parallel responses of a new session share a jar
	byKey *cache.LRU[string, *cookiejar.Jar]
}

// newCookies returns the cookies of an upstream, whose Host header may differ from the host of its
// URL. They are sent over http too, because that reaches only this computer and private networks.
func newCookies(target *url.URL, host string) *cookies {
	of := &url.URL{Scheme: "https", Host: target.Host, Path: target.Path}
	if host != "" {
		of.Host = host
	}
	return &cookies{of: of, byKey: cache.New[string, *cookiejar.Jar](maxSessions)}
}

// addTo adds the cookies of a session. A cookie of the credential takes precedence.
func (c *cookies) addTo(request *http.Request, key string) {
	jar, known := c.byKey.Get(key)
	if !known {
		return
	}
	own := request.Cookies()
	for _, kept := range jar.Cookies(c.of) {
		if !slices.ContainsFunc(own, func(o *http.Cookie) bool { return o.Name == kept.Name }) {
			request.AddCookie(kept)
		}
	}
}

// keep keeps the cookies that a response has set. It forgets those of a session with too many.
func (c *cookies) keep(key string, set []*http.Cookie) {
	if key == "" || len(set) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	jar, known := c.byKey.Get(key)
	if !known {
		jar = newJar()
	}
	// Cookies of another path are never sent, and the limits below would not count them. A new jar
	// tells which they are: it does not send them, even without their time of expiry.
	jar.SetCookies(c.of, slices.DeleteFunc(slices.Clone(set), func(one *http.Cookie) bool {
		always := *one                                 //nolint:gosec // never sent to a browser
		always.MaxAge, always.Expires = 0, time.Time{} // one that has expired deletes another
		single := newJar()
		single.SetCookies(c.of, []*http.Cookie{&always})
		return len(single.Cookies(c.of)) == 0
	}))
	all, length := jar.Cookies(c.of), 0
	for _, kept := range all {
		length += len(kept.Name) + len(kept.Value)
	}
	if len(all) > maxCookies || length > maxSessionBytes {
		c.byKey.Remove(key)
		return
	}
	c.byKey.Add(key, jar)
}

func newJar() *cookiejar.Jar {
	jar, _ := cookiejar.New(nil) // never fails
	return jar
}
