package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/adapters/diagnosis/admin"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
)

func newHealth(out io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	health := &cobra.Command{
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
			report, err := askReadiness(cmd.Context(), config.AdminAddr)
			if err != nil {
				return err
			}
			status, problems := "ready", problemsOf(report)
			if problems != "" {
				status, problems = report.Status, ": "+problems
			}
			_, err = fmt.Fprintf(out, "%s: http://%s/readyz%s\n", status, config.AdminAddr, problems)
			return err
		},
	}
	config.Table().Flags(health, "admin-addr")
	return health
}

// askReadiness returns an error with the problems of a service that is not ready.
func askReadiness(ctx context.Context, addr string) (report admin.Readiness, err error) {
	if addr == "" || addr == service.AdminOff {
		return report, fmt.Errorf("admin-addr is off: give the service an admin listener, for example on %s",
			service.DefaultAdminAddr)
	}
	report, err = admin.ReadReport(ctx, addr)
	switch {
	case err != nil:
		return report, fmt.Errorf("asking the admin listener at %s: %w: is \"pasteport gateway\" or "+
			"\"pasteport serve\" running with this admin-addr?", addr, err)
	case !report.Ready:
		return report, fmt.Errorf("the service is %s: %s", report.Status, problemsOf(report))
	}
	return report, nil
}

func problemsOf(report admin.Readiness) string {
	var problems []string
	for _, check := range report.Checks {
		if check.Problem != "" {
			problems = append(problems, check.Name+": "+check.Problem)
		}
	}
	return strings.Join(problems, "; ")
}
