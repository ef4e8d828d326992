package bootstrap

import (
	"log/slog"
	"net/netip"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/http/forwarded"
)

// BehindProxies returns an IPExtractor for the site's Echo. It reads the client's address from X-Forwarded-For, or from Forwarded (RFC 7239) if the former
// is absent, and trusts the entries of proxies in these networks. Unlike Echo's own it reads addresses with ports, and it warns once about an invalid
// entry. Limits count by this address (B6, D31), so the proxies must not forward the client's own value of the header. A nil logger is slog.Default().
func BehindProxies(logger *slog.Logger, networks ...netip.Prefix) echo.IPExtractor {
	return forwarded.Extractor{Proxies: networks, Logger: logger}.IPExtractor()
}
