package features_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/gomega"
)

func both(spoil ...func(*Front)) func(*Front) {
	return func(f *Front) {
		for _, apply := range spoil {
			apply(f)
		}
	}
}

// ownOrigin asks as a page of the deployment itself, which is always let in.
func ownOrigin(f *Front) { asking("--origin", f.URL())(f) }

// dated answers with a clock that is off.
func dated(off time.Duration) func(*Front) {
	return changing("", func(r *http.Response) { r.Header.Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat)) })
}

// unchallenged answers a message without a token with another status, and leaves the others alone.
func unchallenged(code int) func(*Front) {
	return changing("/mcp", func(r *http.Response) {
		if r.Request.Header.Get("Authorization") == "" && r.Request.Method == http.MethodPost {
			r.StatusCode = code
			r.Header.Set("Location", "/login")
		}
	})
}

// wrongToken answers a wrong token with another status.
func wrongToken(code int) func(*Front) {
	return changing("/mcp", func(r *http.Response) {
		if r.Request.Header.Get("Authorization") != "" && r.StatusCode == http.StatusUnauthorized {
			r.StatusCode = code
		}
	})
}

// originsIgnored answers messages of pages as if they were none.
func originsIgnored(f *Front) {
	f.before(func(r *http.Request) {
		if r.URL.Path == "/mcp" {
			r.Header.Del("Origin")
		}
	})
}

// preflightAllows lets pages send these headers only.
func preflightAllows(path, headers string) func(*Front) {
	return changing(path, func(r *http.Response) {
		if r.Request.Method == http.MethodOptions {
			r.Header.Set("Access-Control-Allow-Headers", headers)
		}
	})
}

// hangUp ends the connection without an answer.
func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// granted alters the answers that hold tokens.
func granted(change func(*http.Response)) func(*Front) {
	return changing("/oauth/token", func(r *http.Response) {
		if r.Request.Method == http.MethodPost && r.StatusCode == http.StatusOK {
			change(r)
		}
	})
}

// documentDown takes the client's document down before anybody reads it.
func documentDown(f *Front) {
	f.before(func(*http.Request) { f.world.Clients.Serve("/doctor.json", http.NotFound) })
}

// withoutToken passes messages on without their token.
func withoutToken(f *Front) {
	f.before(func(r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/mcp" && !strings.Contains(r.Header.Get("Authorization"), "doctor") {
			r.Header.Del("Authorization")
		}
	})
}

// refusedRefresh forgets every refresh token.
func refusedRefresh(f *Front) {
	f.instead(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		if formOf(r).Get("grant_type") != "refresh_token" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_grant"}`)
	})
}

// rewritten replaces a piece of a header.
func rewritten(path, name, old, replacement string) func(*Front) {
	return changing(path, func(r *http.Response) {
		r.Header.Set(name, strings.Replace(r.Header.Get(name), old, replacement, 1))
	})
}

// slashedIssuer spells the issuer with a slash at its end, the same in both documents.
func slashedIssuer(f *Front) {
	member(resourcePath, "authorization_servers", []string{f.URL() + "/"})(f)
	member(serverPath, "issuer", f.URL()+"/")(f)
}

// back alters what the browser takes back to the client.
func back(change func(url.Values)) func(*Front) {
	return changing("/oauth/authorize", func(r *http.Response) {
		base, rawQuery, found := strings.Cut(r.Header.Get("Location"), "?")
		query, err := url.ParseQuery(rawQuery)
		if !found || err != nil {
			return
		}
		change(query)
		r.Header.Set("Location", base+"?"+query.Encode())
	})
}

// certified serves with a certificate of its own for the address, until then.
func certified(address string, until time.Time) *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.ParseIP(address)},
		NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: until,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
}
