package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/server"
)

const (
	healthLimit = 10 * time.Second // each readiness check takes at most two seconds
	healthSize  = 64 << 10         // bytes of an answer
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
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", http.NoBody)
	if err != nil {
		return fmt.Errorf("admin-addr %q is invalid: write host:port, for example %s", addr, server.DefaultAdminAddr)
	}
	request.Host = "localhost"                                                  // accepted on every listen address
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // without a proxy
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("requesting the admin listener: %w: is \"pasteport gateway\" or \"pasteport serve\" running with this admin-addr?", err)
	}
	defer response.Body.Close()
	return readinessError(response)
}

func readinessError(response *http.Response) error {
	var said struct {
		Status string
		Checks []struct{ Name, Problem string }
	}
	err := json.NewDecoder(io.LimitReader(response.Body, healthSize)).Decode(&said)
	if err != nil || said.Status == "" {
		return fmt.Errorf("%s responds with %s, but is not a pasteport admin listener: set admin-addr to the service's", response.Request.URL, response.Status)
	}
	if response.StatusCode == http.StatusOK {
		return nil
	}
	var problems []string
	for _, check := range said.Checks {
		if check.Problem != "" {
			problems = append(problems, check.Name+": "+check.Problem)
		}
	}
	return fmt.Errorf("the service is %s: %s", said.Status, strings.Join(problems, "; "))
}
