// Package certificates keeps the TLS certificate of a server up to date: from two files, or from an ACME certificate authority.
package certificates

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

const (
	// lookEvery is how often the files are looked at, at most; handshakes in between cost nothing.
	lookEvery = time.Second
	// warnAhead is how long before its end a certificate is complained about, or a fifth of its life when that is shorter.
	warnAhead = 14 * 24 * time.Hour
	warnEvery = 24 * time.Hour
)

// Files is the certificate in two PEM files. They are read again when they have changed; what cannot be used is logged, and the
// certificate before it stays.
type Files struct {
	cert, key string
	now       func() time.Time
	logger    *slog.Logger

	mu             sync.Mutex
	current        *tls.Certificate
	content        string // of both files, as they were last seen
	looked, warned time.Time
}

// OpenFiles reads the chain and the private key. They have to be usable now.
func OpenFiles(cert, key string, now func() time.Time, logger *slog.Logger) (*Files, error) {
	f := &Files{cert: cert, key: key, now: now, logger: logger}
	if err := f.look(); err != nil {
		return nil, err
	}
	return f, nil
}

// TLS serves the certificate over TLS 1.2 and later.
func (f *Files) TLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: f.certificate}
}

func (f *Files) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now().Sub(f.looked) >= lookEvery {
		if err := f.look(); err != nil {
			f.logger.Error("the new TLS certificate cannot be used, the old one stays", "error", err)
		}
	}
	return f.current, nil
}

// look takes the certificate if the files are not those that were last seen; each content is complained about once.
func (f *Files) look() error {
	f.looked = f.now()
	defer f.warn()
	cert, err := os.ReadFile(f.cert)
	if err != nil {
		return f.unreadable(err)
	}
	key, err := os.ReadFile(f.key)
	if err != nil {
		return f.unreadable(err)
	}
	if !f.changed(string(cert)+string(key)) && f.current != nil {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("reading the TLS certificate %s with the key %s: %w: both have to be PEM and belong together", f.cert, f.key, err)
	}
	f.current, f.warned = &pair, time.Time{}
	f.logger.Info("TLS certificate read", "file", f.cert, "names", pair.Leaf.DNSNames, "ends", pair.Leaf.NotAfter)
	return nil
}

func (f *Files) unreadable(err error) error {
	if !f.changed(err.Error()) {
		return nil
	}
	return fmt.Errorf("reading the TLS certificate: %w", err)
}

func (f *Files) changed(content string) bool {
	before := f.content
	f.content = content
	return content != before
}

// warn says once a day that the certificate ends soon.
func (f *Files) warn() {
	if f.current == nil || f.looked.Sub(f.warned) < warnEvery {
		return
	}
	leaf := f.current.Leaf
	ahead := min(warnAhead, leaf.NotAfter.Sub(leaf.NotBefore)/5)
	if left := leaf.NotAfter.Sub(f.looked); left < ahead {
		f.warned = f.looked
		f.logger.Warn("the TLS certificate ends soon: put a new one into its files", "file", f.cert, "ends", leaf.NotAfter, "left", left.Round(time.Minute))
	}
}
