package http_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// A browser asks for the consent page of a client whose document is remembered.
func BenchmarkConsentPage(b *testing.B) {
	site := openSite(b)
	challenge := sha256.Sum256([]byte("a-verifier-that-is-long-enough-for-the-rules"))
	query := url.Values{
		"client_id":             {site.client},
		"redirect_uri":          {redirectURI},
		"response_type":         {"code"},
		"state":                 {"0123456789abcdef"},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(challenge[:])},
		"code_challenge_method": {"S256"},
		"scope":                 {"mcp offline_access"},
		"resource":              {"http://127.0.0.1:8080/mcp"},
	}
	r := httptest.NewRequest(http.MethodGet, "/oauth/authorize?"+query.Encode(), nil)
	r.Header.Set("Accept-Language", "de-CH,de;q=0.9,en;q=0.8")
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		site.echo.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatalf("answered %d: %s", w.Code, w.Body)
		}
	}
}
