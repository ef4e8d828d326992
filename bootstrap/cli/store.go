package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
)

func newStoreMigrate(out io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	migrate := &cobra.Command{
		Use:   "migrate",
		Short: "Update the database schema before services of this version start",
		Args:  term.NoArguments,
		Long: "Update the schema of the store, or create it in an empty database. Services do the same when they " +
			"start; use this command for a\n" +
			"rolling upgrade that starts with the database. Replicas may run or start meanwhile. No server secret is " +
			"needed.",
		Example: "  pasteport store migrate --data /var/lib/pasteport\n" +
			"  PASTEPORT_DATABASE=postgres://pasteport:password@db.internal/pasteport pasteport store migrate",
		RunE: func(*cobra.Command, []string) error {
			applied, err := config.StoreLocation().Migrate()
			if err != nil {
				return err
			}
			line := "no migrations needed: the schema is up to date"
			if len(applied) > 0 {
				line = "applied: " + strings.Join(applied, ", ")
			}
			_, err = fmt.Fprintf(out, "%s\n%s\n", config.StoreLocation(), line)
			return err
		},
	}
	config.Table().Flags(migrate, service.StoreSettings...)
	return migrate
}

func newStoreCheck(out io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	var asJSON bool
	command := &cobra.Command{
		Use:   "check",
		Short: "Check the store without changing it",
		Args:  term.NoArguments,
		Long: "Check the store without changing it; services may run meanwhile. The checks: the schema, durable " +
			"settings, the server secret,\n" +
			"the clock of a server or the file of SQLite, and that every code and grant can be read.\n" +
			"The exit code is 1 if a check fails; its line names the remedy.",
		Example: "  pasteport store check --data /var/lib/pasteport\n  pasteport store check --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := config.StoreLocation().OpenUnchecked()
			if err != nil {
				return err
			}
			checks := store.Checks(cmd.Context())
			if err := store.Close(); err != nil {
				return err
			}
			return report(out, checks, asJSON)
		},
	}
	config.Table().Flags(command, service.StoreSettings...)
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return command
}

func newStoreBackup(out io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	command := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a backup of the SQLite file while services run",
		Args:  term.OneArgument("name the file to write: pasteport store backup FILE"),
		Long: "Write the SQLite file of the store, as it is now, to a new file. Services may run meanwhile.\n" +
			"Back up the server secret, too: the backup is useless without it.",
		Example: "  pasteport store backup oauth-backup.db --data /var/lib/pasteport",
		RunE: func(cmd *cobra.Command, args []string) error {
			location := config.StoreLocation()
			err := location.UseExisting(func(store *persistence.Store) error {
				return store.Backup(cmd.Context(), args[0])
			})
			if err != nil {
				return fmt.Errorf("backing up %s: %w", location, err)
			}
			_, err = fmt.Fprintf(out, "%s\nnext: back up the server secret, %s, too\n", args[0],
				location.SecretFile())
			return err
		},
	}
	config.Table().Flags(command, service.StoreSettings...)
	return command
}

// report prints the checks and fails when one of them has a problem.
func report(out io.Writer, checks []persistence.Check, asJSON bool) error {
	if asJSON {
		if err := term.PrintJSON(out, checks); err != nil {
			return err
		}
	}
	failed := 0
	for _, check := range checks {
		status, line := "ok", check.Found
		if check.Problem != "" {
			failed++
			status, line = term.New(out).Red("FAILED"), check.Problem
		}
		if !asJSON {
			_, _ = fmt.Fprintf(out, "%-6s  %-17s  %s\n", status, check.Name, line)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(checks))
	}
	return nil
}
