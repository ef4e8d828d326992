package diagnosis

import (
	"context"
	"net/url"

	"github.com/pasteport/pasteport/adapters/doctor"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// upstreamFindings asks the admin listener of a gateway at the configured address. Mistakes in the
// settings, which may be those of another service, stop only this check.
func (o doctorOptions) upstreamFindings(ctx context.Context, endpoint *url.URL) []doctor.Finding {
	switch admin := *o.adminAddr; {
	case o.unread != nil:
		return []doctor.Finding{doctor.SkippedUpstreams("because the settings cannot be read: " + o.unread.Error())}
	case admin == "" || admin == service.AdminOff:
		return []doctor.Finding{
			doctor.SkippedUpstreams("because admin-addr is off: give the gateway an admin listener, for example on " +
				service.DefaultAdminAddr)}
	default:
		return doctor.Upstreams(ctx, admin, endpoint)
	}
}
