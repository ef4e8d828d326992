package diagnosis

import (
	"context"
	"net/url"

	"github.com/pasteport/pasteport/adapters/doctor"
	"github.com/pasteport/pasteport/bootstrap/server"
)

// upstreamFindings asks the admin listener of a gateway; at the default address only for an endpoint on this computer.
func upstreamFindings(ctx context.Context, admin string, endpoint *url.URL) []doctor.Finding {
	switch {
	case admin == "" || admin == server.AdminOff:
		return []doctor.Finding{doctor.SkippedUpstreams("because admin-addr is off: give the gateway an admin listener, for example on " + server.DefaultAdminAddr)}
	case admin == server.DefaultAdminAddr && !doctor.IsLoopback(endpoint):
		return []doctor.Finding{doctor.SkippedUpstreams("because the URL is not on this computer: if it is a pasteport gateway, run doctor on its computer with " +
			"--admin-addr localhost:8081 or the address of its admin listener")}
	}
	return doctor.Upstreams(ctx, admin, endpoint)
}
