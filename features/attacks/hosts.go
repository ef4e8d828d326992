package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// hosts are the hosts on which MCP clients publish their documents, those of honest people and of
// attackers. Each has a separate address in 127.0.0.0/8, which the server limits like a domain. The
// answer depends on the path alone:
//
//	/client/...   the document of a client; it may be kept for an hour
//	/slow/...     a document that takes ten seconds
//
// Any other path is 404.
type hosts struct {
	certificates string // file with the certificate of the authority
	parent       *x509.Certificate
	key          *ecdsa.PrivateKey
	server       *http.Server

	mu     sync.Mutex
	next   netip.Addr
	port   int
	leaves map[string]*tls.Certificate
}

const slowAnswer = 10 * time.Second

func startHosts(dir string) (*hosts, error) {
	h := &hosts{next: netip.MustParseAddr("127.10.0.1"), leaves: map[string]*tls.Certificate{},
		certificates: filepath.Join(dir, "authority.pem")}
	var err error
	if h.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	h.parent = &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "attacks"},
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, h.parent, h.parent, h.key.Public(), h.key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate authority: %w", err)
	}
	if err := os.WriteFile(h.certificates, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		0o600); err != nil {
		return nil, err
	}
	h.server = &http.Server{
		Handler:           h,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: h.certificate},
	}
	return h, nil
}

// certificate returns the certificate of the address that the connection is to.
func (h *hosts) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	host, _, err := net.SplitHostPort(hello.Conn.LocalAddr().String())
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if leaf := h.leaves[host]; leaf != nil {
		return leaf, nil
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(int64(len(h.leaves)) + 2), NotAfter: h.parent.NotAfter,
		IPAddresses: []net.IP{net.ParseIP(host)}}
	der, err := x509.CreateCertificate(rand.Reader, template, h.parent, h.key.Public(), h.key)
	if err != nil {
		return nil, err
	}
	h.leaves[host] = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: h.key}
	return h.leaves[host], nil
}

// add starts another host and returns its origin.
func (h *hosts) add() (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next = h.next.Next()
	listener, err := net.Listen("tcp", netip.AddrPortFrom(h.next, uint16(h.port)).String())
	if err != nil {
		return "", fmt.Errorf("starting the host of a client: %w", err)
	}
	h.port = listener.Addr().(*net.TCPAddr).Port
	go func() { _ = h.server.ServeTLS(listener, "", "") }()
	return "https://" + listener.Addr().String(), nil
}

func (h *hosts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	origin := "https://" + r.Host
	document := map[string]any{
		"client_id":                  origin + r.URL.Path,
		"client_name":                "Client",
		"redirect_uris":              []string{redirect},
		"grant_types":                []string{"authorization_code", "refresh_token"},
		"token_endpoint_auth_method": "none",
	}
	switch first, _, _ := strings.Cut(r.URL.Path[1:], "/"); first {
	case "client":
		w.Header().Set("Cache-Control", "max-age=3600")
	case "slow": // sends its header immediately, so that the wait is for the body
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(slowAnswer):
		case <-r.Context().Done():
		}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document)
}

func (h *hosts) stop() error { return h.server.Close() }
