package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/pasteport/pasteport/adapters/admin"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// upstream reads what the admin listener of a gateway knows about the MCP server. The listener is
// not public, because it names internal addresses.
func upstream(ctx context.Context, p *probe) (seen, fix string) {
	if p.admin == "" || p.admin == service.AdminOff {
		return "", "because admin-addr is off: give the gateway an admin listener, for example on " +
			service.DefaultAdminAddr
	}
	read, err := admin.ReadReport(ctx, p.admin)
	if connection, isURL := errors.AsType[*url.Error](err); isURL {
		err = connection.Err // without the URL, because the reason below has the address
	}
	if err != nil {
		return "", fmt.Sprintf("because the admin listener at %s cannot be read (%v): if this server is a pasteport "+
			"gateway, run doctor on its computer, or name the address of its admin listener with --admin-addr",
			p.admin, err)
	}
	proxies := ""
	for _, check := range read.Checks {
		resource, isUpstream := strings.CutPrefix(check.Name, admin.UpstreamCheckPrefix)
		switch {
		case check.Name == admin.ProxiesCheck && check.Remedy != "":
			proxies = "; " + check.Detail + ": " + check.Remedy
		case !isUpstream || strings.TrimSuffix(resource, "/") != strings.TrimSuffix(p.endpoint.String(), "/"):
		case check.Problem != "":
			return check.Problem, cmp.Or(check.Remedy, "Read the log of the gateway and of the MCP server.")
		case check.State == string(bootstrap.UpstreamUnknown.State):
			return "", "because the gateway has not checked it yet: run doctor again"
		default:
			seen = strings.TrimSuffix(check.Detail+": "+check.Remedy, ": ")
		}
	}
	if seen == "" {
		return "", "because the service with the admin listener at " + p.admin + " has no upstream for this URL: if " +
			"another one is the gateway, name the address of its admin listener with --admin-addr" + proxies
	}
	return seen + proxies, ""
}
