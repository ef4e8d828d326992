package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/adapters/persistence/maintenance"
)

func newStore(out io.Writer) *cobra.Command {
	store := &cobra.Command{
		Use: "store", Short: "Migrate, check and copy what is kept", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	store.AddCommand(newStoreMigrate(out), newStoreCheck(out), newStoreCopy(out))
	return store
}

func newStoreMigrate(out io.Writer) *cobra.Command {
	config := defaultConfig()
	migrate := &cobra.Command{
		Use: "migrate", Short: "Bring the schema up to date, before services of this version start", Args: noArguments,
		Long: "Bring the schema of the store up to date, or make it in an empty database. Services do the same when they start; this is for a\n" +
			"rolling upgrade that begins with the database. Any number of replicas may run or start meanwhile. It needs no server secret.",
		Example: "  pasteport store migrate --data /var/lib/pasteport\n" +
			"  PASTEPORT_DATABASE=postgres://pasteport:password@db.internal/pasteport pasteport store migrate",
		RunE: func(*cobra.Command, []string) error {
			applied, err := config.store().migrate()
			if err != nil {
				return err
			}
			said := "nothing was missing: the schema is up to date"
			if len(applied) > 0 {
				said = "applied: " + strings.Join(applied, ", ")
			}
			_, err = fmt.Fprintf(out, "%s\n%s\n", config.store(), said)
			return err
		},
	}
	config.addSettings(migrate, storeSettings...)
	return migrate
}

func newStoreCheck(out io.Writer) *cobra.Command {
	config := defaultConfig()
	var asJSON bool
	command := &cobra.Command{
		Use: "check", Short: "Say what holds of the store, and what does not", Args: noArguments,
		Long: "Look at the store, also beside running services, and change nothing: its schema, whether its settings survive a power failure,\n" +
			"whether the server secret is the one that it was used with, whether the clocks agree, and whether every row can be read. The exit\n" +
			"code is 1 when something does not hold; its line says what to do.",
		Example: "  pasteport store check --data /var/lib/pasteport\n  pasteport store check --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			checks, err := checkStore(cmd.Context(), config.store())
			if err != nil {
				return err
			}
			return report(newTerminal(out), checks, asJSON)
		},
	}
	config.addSettings(command, storeSettings...)
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return command
}

func checkStore(ctx context.Context, at storePlace) (checks []maintenance.Check, err error) {
	store, err := at.openUnchecked()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return store.Checks(ctx), nil
}

// report fails when something does not hold.
func report(t terminal, checks []maintenance.Check, asJSON bool) error {
	if asJSON {
		if err := printJSON(t.out, checks); err != nil {
			return err
		}
	}
	failed := 0
	for _, check := range checks {
		status, said := t.green("ok    "), check.Found
		if check.Problem != "" {
			failed++
			status, said = t.red("FAILED"), check.Problem
		}
		if !asJSON {
			t.say("%s  %-17s  %s\n", status, check.Name, said)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(checks))
	}
	return nil
}
