package bootstrap

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/labstack/echo/v4"
)

// hostServer looks once at the http.Server that a host runs its Echo on. Register cannot: a host may start Echo's own server or any other.
type hostServer struct{ seen atomic.Bool }

// before looks at the server of the first request that begins.
func (h *hostServer) before(begin func(echo.Context) context.Context, logger *slog.Logger) func(echo.Context) context.Context {
	return func(c echo.Context) context.Context {
		if !h.seen.Load() && !h.seen.Swap(true) {
			warnOfMissing(c.Request(), logger)
		}
		return begin(c)
	}
}

// warnOfMissing names the bounds without which a request keeps memory or a connection before anybody has seen its token.
func warnOfMissing(r *http.Request, logger *slog.Logger) {
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
		logger.Warn("the http.Server of this site lets anybody keep its memory and connections by headers", "missing", strings.Join(missing, ", "),
			"advice", "set MaxHeaderBytes to 32 KiB and ReadHeaderTimeout to 10 s on it, or on Echo's Server and TLSServer before Start")
	}
}
