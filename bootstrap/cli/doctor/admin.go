package doctor

import (
	"context"
	"net/url"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// upstreamFindings asks the admin listener of a gateway at the configured address. Mistakes in the
// settings, which may be those of another service, stop only this check.
func (o doctorOptions) upstreamFindings(ctx context.Context, endpoint *url.URL) []Finding {
	switch admin := *o.adminAddr; {
	case o.unread != nil:
		return []Finding{SkippedUpstreams("because the settings cannot be read: " + o.unread.Error())}
	case admin == "" || admin == service.AdminOff:
		return []Finding{
			SkippedUpstreams("because admin-addr is off: give the gateway an admin listener, for example on " +
				service.DefaultAdminAddr)}
	default:
		return Upstreams(ctx, admin, endpoint)
	}
}
