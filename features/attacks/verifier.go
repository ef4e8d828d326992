package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
)

// Prefixes of the site's tokens: tokens with the first prefix are valid.
const (
	rightPrefix = "right_"
	wrongPrefix = "wrong_"
)

// verifier serves the verify-url of the site. It counts the wrong tokens that it checks.
type verifier struct {
	server  *httptest.Server
	guesses atomic.Int64
}

func startVerifier() *verifier {
	v := &verifier{}
	v.server = httptest.NewServer(v)
	return v
}

func (v *verifier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !strings.HasPrefix(token, rightPrefix) {
		v.guesses.Add(1)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).
		Encode(map[string]any{"subject": fmt.Sprintf("%x", sha256.Sum256([]byte(token))), "roles": []string{"editor"}})
}

// settings returns the settings for a site with this verifier.
func (v *verifier) settings() []string {
	return []string{"--verifier", "http", "--verify-url", v.server.URL + "/"}
}
