package doctor

import (
	"context"
	"net/url"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// upstreamFindings asks the admin listener of a gateway at the configured address.
func (o doctorOptions) upstreamFindings(ctx context.Context, endpoint *url.URL) []Finding {
	switch admin := *o.adminAddr; {
	case admin == "" || admin == service.AdminOff:
		return []Finding{
			SkippedUpstreams("because admin-addr is off: give the gateway an admin listener, for example on " +
				service.DefaultAdminAddr)}
	default:
		return Upstreams(ctx, admin, endpoint)
	}
}
