package bootstrap

import (
	"crypto/x509"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// OAuthOption configures an OAuthServer.
type OAuthOption func(*parts)

type parts struct {
	clients    oauth.ClientDirectory
	roots      *x509.CertPool
	appearance Appearance

	decided      func(event string)
	limited      oauth.LimitObserver
	sweepEvery   time.Duration
	sharedLimits bool
}

// WithClientDirectory replaces the directory that fetches clients from their metadata documents (CIMD). If it is an oauth.KeyDirectory, it also
// provides their keys.
func WithClientDirectory(clients oauth.ClientDirectory) OAuthOption {
	return func(p *parts) { p.clients = clients }
}

// WithRootCAs sets the certificate authorities for fetching metadata documents; the default is those of the system.
func WithRootCAs(roots *x509.CertPool) OAuthOption {
	return func(p *parts) { p.roots = roots }
}

// WithDecisions calls count with the name of each audit event.
func WithDecisions(count func(event string)) OAuthOption {
	return func(p *parts) { p.decided = count }
}

// WithLimitObserver calls observe for each request that a limit of the Config slows or refuses, and for each session or connection that a
// limit ends.
func WithLimitObserver(observe oauth.LimitObserver) OAuthOption {
	return func(p *parts) { p.limited = observe }
}
