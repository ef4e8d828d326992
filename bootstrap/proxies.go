package bootstrap

import (
	"log/slog"
	"net/netip"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/http/forwarded"
)

// BehindProxies returns an IPExtractor for the site's Echo that reads the client's address from X-Forwarded-For or, where a request has
// none, from Forwarded (RFC 7239), and believes what proxies in these networks have written. Unlike Echo's own it reads addresses with ports,
// and warns once when it cannot read one. Limits count by this address (B6, D31), so the proxies must not pass on what the client has
// written to the header that they use. The logger is slog.Default() when nil.
func BehindProxies(logger *slog.Logger, networks ...netip.Prefix) echo.IPExtractor {
	return forwarded.Extractor{Proxies: networks, Logger: logger}.IPExtractor()
}
