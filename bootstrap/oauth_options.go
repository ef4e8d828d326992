package bootstrap

import (
	"crypto/x509"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// OAuthOption replaces a part that NewOAuthServer would otherwise choose.
type OAuthOption func(*parts)

type parts struct {
	clients oauth.ClientDirectory
	roots   *x509.CertPool
	look    Appearance

	decided      func(event string)
	limited      oauth.LimitObserver
	sweepEvery   time.Duration
	sharedLimits bool
}

// WithClientDirectory looks clients up elsewhere than in their published metadata documents.
func WithClientDirectory(clients oauth.ClientDirectory) OAuthOption {
	return func(p *parts) { p.clients = clients }
}

// WithRootCAs trusts these authorities instead of the system's when metadata documents are fetched.
func WithRootCAs(roots *x509.CertPool) OAuthOption {
	return func(p *parts) { p.roots = roots }
}

// WithDecisions tells each decision of the server by the name of its audit event, to be counted.
func WithDecisions(count func(event string)) OAuthOption {
	return func(p *parts) { p.decided = count }
}

// WithLimitObserver calls observe for each request that a limit of the Config slows or refuses, and for each session or connection that a
// limit ends.
func WithLimitObserver(observe oauth.LimitObserver) OAuthOption {
	return func(p *parts) { p.limited = observe }
}
