package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/adapters/admin"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
)

func newHealth(out io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	return config.Table().Flags(&cobra.Command{
		Use:   "health",
		Short: "Check whether a running service is ready",
		Args:  term.NoArguments,
		Long: "Request /readyz from the admin listener of a service on this computer. The exit code is 0 if the " +
			"service is ready, else 1.\n" +
			"A service whose upstream does not work is degraded, but ready.\n" +
			"Use it as the health check of a container without a shell.",
		Example: "  pasteport health\n" +
			"  pasteport health --admin-addr 127.0.0.1:9081",
		RunE: func(cmd *cobra.Command, _ []string) error {
			addr := config.AdminAddr
			if addr == "" || addr == service.AdminOff {
				return fmt.Errorf("admin-addr is off: give the service an admin listener, for example on %s",
					service.DefaultAdminAddr)
			}
			report, err := admin.ReadReport(cmd.Context(), addr)
			if err != nil {
				return fmt.Errorf("asking the admin listener at %s: %w: is \"pasteport gateway\" or "+
					"\"pasteport serve\" running with this admin-addr?", addr, err)
			}
			var found []string
			for _, check := range report.Checks {
				if check.Problem != "" {
					found = append(found, check.Name+": "+check.Problem)
				}
			}
			status, problems := "ready", strings.Join(found, "; ")
			switch {
			case !report.Ready:
				return fmt.Errorf("the service is %s: %s", report.Status, problems)
			case problems != "":
				status, problems = report.Status, ": "+problems
			}
			_, err = fmt.Fprintf(out, "%s: http://%s/readyz%s\n", status, addr, problems)
			return err
		},
	}, "admin-addr")
}
