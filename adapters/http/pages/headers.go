package pages

import "net/http"

const policyHeader = "Content-Security-Policy"

// setHeaders sets the security headers of HTML pages. The caller sets
// Strict-Transport-Security, which depends on the scheme.
func setHeaders(h http.Header, nonce string, logo bool) {
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	// No form-action: browsers apply it to the redirect after the form, too, and the client never
	// gets its answer.
	policy := "default-src 'none'; style-src 'nonce-" + nonce + "'; base-uri 'none'; frame-ancestors 'none'"
	if logo {
		policy += "; img-src data:"
	}
	h.Set(policyHeader, policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	// Not no-referrer: that turns the form's Origin into null, and the cross-origin guard refuses
	// it.
	h.Set("Referrer-Policy", "same-origin")
}
