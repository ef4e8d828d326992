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

// ownOrigin sends the deployment's own origin, which is always allowed.
func ownOrigin(f *Front) { asking("--origin", f.URL())(f) }

// dated shifts the clock of the responses.
func dated(off time.Duration) func(*Front) {
	return changing("", func(r *http.Response) {
		r.Header.Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
	})
}

// unchallenged responds to messages without a token with another status.
func unchallenged(code int) func(*Front) {
	return changing("/mcp", func(r *http.Response) {
		if r.Request.Header.Get("Authorization") == "" && r.Request.Method == http.MethodPost {
			r.StatusCode = code
			r.Header.Set("Location", "/login")
		}
	})
}

// originsIgnored responds to messages of web pages without checking the origin.
func originsIgnored(f *Front) {
	f.before(func(r *http.Request) {
		if r.URL.Path == "/mcp" {
			r.Header.Del("Origin")
		}
	})
}

// preflightAllows allows web pages to send these headers only.
func preflightAllows(path, headers string) func(*Front) {
	return changing(path, func(r *http.Response) {
		if r.Request.Method == http.MethodOptions {
			r.Header.Set("Access-Control-Allow-Headers", headers)
		}
	})
}

// hangUp ends the connection without a response.
func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// granted changes the responses with tokens.
func granted(change func(*http.Response)) func(*Front) {
	return changing("/oauth/token", func(r *http.Response) {
		if r.Request.Method == http.MethodPost && r.StatusCode == http.StatusOK {
			change(r)
		}
	})
}

// withoutToken forwards messages without their token.
func withoutToken(f *Front) {
	f.before(func(r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/mcp" &&
			!strings.Contains(r.Header.Get("Authorization"), "doctor") {
			r.Header.Del("Authorization")
		}
	})
}

// refusedRefresh refuses every refresh.
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

// rewritten replaces part of a header.
func rewritten(path, name, old, replacement string) func(*Front) {
	return changing(path, func(r *http.Response) {
		r.Header.Set(name, strings.Replace(r.Header.Get(name), old, replacement, 1))
	})
}

// slashedIssuer adds a trailing slash to the issuer in both documents.
func slashedIssuer(f *Front) {
	member(resourcePath, "authorization_servers", []string{f.URL() + "/"})(f)
	member(serverPath, "issuer", f.URL()+"/")(f)
}

// back changes the parameters of the redirect to the client.
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

// certified serves with a certificate for this address that is valid until then.
func certified(address string, until time.Time) *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		IPAddresses:  []net.IP{net.ParseIP(address)},
		NotBefore:    time.Now().AddDate(-1, 0, 0),
		NotAfter:     until,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
		MinVersion: tls.VersionTLS12}
}
