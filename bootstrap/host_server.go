package bootstrap

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/labstack/echo/v4"
)

// hostServer checks the limits of the host's http.Server once, at the first request. Register cannot, because it does not know the server.
type hostServer struct{ checked atomic.Bool }

// checkBefore returns begin with the check at its first call.
func (h *hostServer) checkBefore(begin func(echo.Context) context.Context, logger *slog.Logger) func(echo.Context) context.Context {
	return func(c echo.Context) context.Context {
		if !h.checked.Load() && !h.checked.Swap(true) {
			warnOfMissingLimits(c.Request(), logger)
		}
		return begin(c)
	}
}

// warnOfMissingLimits logs the missing limits without which an unauthenticated request can keep memory or a connection.
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
		logger.Warn("the http.Server of this site does not limit the memory and connections of unauthenticated requests", "missing", strings.Join(missing, ", "),
			"advice", "set MaxHeaderBytes to 32 KiB and ReadHeaderTimeout to 10 s on it, or on Echo's Server and TLSServer before Start")
	}
}
