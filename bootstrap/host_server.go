package bootstrap

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/labstack/echo/v4"
)

// serverCheck checks the limits of the host's http.Server once, at the first request, because Register has no access to the server.
type serverCheck struct{ done atomic.Bool }

// before wraps begin, so that its first call checks the server.
func (s *serverCheck) before(begin func(echo.Context) context.Context, logger *slog.Logger) func(echo.Context) context.Context {
	return func(c echo.Context) context.Context {
		if !s.done.Load() && !s.done.Swap(true) {
			warnOfMissingLimits(c.Request(), logger)
		}
		return begin(c)
	}
}

// warnOfMissingLimits logs which limits are missing. Without them an unauthenticated request can hold memory or a connection for any time.
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
