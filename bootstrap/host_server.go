package bootstrap

import (
	"log/slog"
	"net/http"
	"net/netip"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/http/forwarded"
)

// warnOfMissingLimits logs which limits are missing. Without them an unauthenticated request can
// hold memory or a connection for any time.
func warnOfMissingLimits(r *http.Request, logger *slog.Logger) {
	server, known := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !known {
		return
	}
	var missing []string
	if server.MaxHeaderBytes <= 0 {
		missing = append(missing, "MaxHeaderBytes")
	}
	if server.ReadHeaderTimeout <= 0 && server.ReadTimeout <= 0 {
		missing = append(missing, "ReadHeaderTimeout")
	}
	if len(missing) > 0 {
		logger.Warn("the http.Server of this site does not limit the memory and connections of "+
			"unauthenticated requests", "missing", strings.Join(missing, ", "),
			"advice", "set MaxHeaderBytes to 32 KiB and ReadHeaderTimeout to 10 s on it, or on Echo's Server and "+
				"TLSServer before Start")
	}
}

// BehindProxies returns an IPExtractor for the site's Echo. It reads the client's address from
// X-Forwarded-For, or from Forwarded (RFC 7239) if the former is absent, and trusts the entries of
// proxies in these networks. Unlike Echo's own it reads addresses with ports, and it warns once
// about an invalid entry. Limits count by this address, so the proxies must not forward the
// client's own value of the header. A nil logger is slog.Default().
func BehindProxies(logger *slog.Logger, networks ...netip.Prefix) echo.IPExtractor {
	return forwarded.Extractor{Proxies: networks, Logger: logger}.IPExtractor()
}
