package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/adapters/readiness"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/server"
)

func newHealth(out io.Writer) *cobra.Command {
	config := server.DefaultConfig()
	health := &cobra.Command{
		Use: "health", Short: "Check whether a running service is ready", Args: term.NoArguments,
		Long: "Request /readyz from the admin listener of a service on this computer. The exit code is 0 if the service is ready, else 1.\n" +
			"Use it as the health check of a container without a shell.",
		Example: "  pasteport health\n" +
			"  pasteport health --admin-addr 127.0.0.1:9081",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := askReadiness(cmd.Context(), config.AdminAddr); err != nil {
				return err
			}
			_, err := fmt.Fprintf(out, "ready: http://%s/readyz\n", config.AdminAddr)
			return err
		},
	}
	config.Table().Flags(health, "admin-addr")
	return health
}

// askReadiness returns an error with the problems that the service reports.
func askReadiness(ctx context.Context, addr string) error {
	if addr == "" || addr == server.AdminOff {
		return fmt.Errorf("admin-addr is off: give the service an admin listener, for example on %s", server.DefaultAdminAddr)
	}
	report, err := readiness.Read(ctx, addr)
	other := new(readiness.OtherServerError)
	switch {
	case errors.Is(err, readiness.ErrAddress):
		return fmt.Errorf("admin-addr %q is invalid: write host:port, for example %s", addr, server.DefaultAdminAddr)
	case errors.As(err, &other):
		return fmt.Errorf("%s responds with %s, but is not a pasteport admin listener: set admin-addr to the service's", other.URL, other.Status)
	case err != nil:
		return fmt.Errorf("requesting the admin listener: %w: is \"pasteport gateway\" or \"pasteport serve\" running with this admin-addr?", err)
	case report.Ready:
		return nil
	}
	return problemsOf(report)
}

func problemsOf(report readiness.Report) error {
	var problems []string
	for _, check := range report.Checks {
		if check.Problem != "" {
			problems = append(problems, check.Name+": "+check.Problem)
		}
	}
	return fmt.Errorf("the service is %s: %s", report.Status, strings.Join(problems, "; "))
}
