package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
)

func newStoreMigrate(out io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	return config.Table().Flags(&cobra.Command{
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
	}, service.StoreSettings...)
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
			store, err := config.StoreLocation().OpenWith(persistence.OpenUnchecked)
			if err != nil {
				return err
			}
			checks := store.Checks(cmd.Context())
			if err := store.Close(); err != nil {
				return err
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
			if asJSON {
				err = term.PrintJSON(out, checks)
			}
			if err == nil && failed > 0 {
				err = fmt.Errorf("%d of %d checks failed", failed, len(checks))
			}
			return err
		},
	}
	config.Table().Flags(command, service.StoreSettings...)
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return command
}

func newStoreBackup(out io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	return config.Table().Flags(&cobra.Command{
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
	}, service.StoreSettings...)
}

func newStoreCopy(out io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	var from, to string
	command := &cobra.Command{
		Use:   "copy",
		Short: "Copy the store to another database",
		Args:  term.NoArguments,
		Long: "Copy grants, tokens and the trace from one store to another, and compare both at the end. Stop the " +
			"services on the source first:\n" +
			"a SQLite file is locked during the copy, so services would respond with 503, and a copy of a database " +
			"server fails at the end if\n" +
			"it changed meanwhile. The destination must be empty; its schema is created or updated first.\n" +
			"An interrupted copy leaves nothing: run the same command again.\n\n" +
			"The default source is the SQLite file in data, and the default destination is the server in the setting " +
			"database, so that no\n" +
			"password is on the command line. To copy from a database server, set server-secret to its secret file.",
		Example: "  PASTEPORT_DATABASE=postgres://pasteport:password@db.internal/pasteport pasteport store copy " +
			"--data /var/lib/pasteport\n" +
			"  pasteport store copy --from sqlite:///var/lib/pasteport/oauth.db --to " +
			"mysql://pasteport:password@db.internal/pasteport\n" +
			"  pasteport store copy --from postgres://db.internal/pasteport --to sqlite:///var/lib/pasteport/oauth.db",
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, err := locationOf(*config, "from", from, config.FileLocation())
			if err != nil {
				return err
			}
			target, err := locationOf(*config, "to", to, config.StoreLocation())
			if err != nil {
				return err
			}
			if to == "" && !target.IsServer() {
				return term.Usagef("the destination is missing: add --to, or set database")
			}
			return copyStore(cmd.Context(), source, target, out)
		},
	}
	config.Table().Flags(command, service.StoreSettings...)
	command.Flags().StringVar(&from, "from", "",
		"source: sqlite:///path/oauth.db, postgres://… or mysql://… (default: the SQLite file in data)")
	command.Flags().StringVar(&to, "to", "", "destination, written like --from (default: the server in database)")
	return command
}

// locationOf returns the location that the flag names. Its error does not repeat the address, which
// may hold a password.
func locationOf(config service.Config, flag, address string,
	otherwise service.StoreLocation) (service.StoreLocation, error) {
	if address == "" {
		return otherwise, nil
	}
	location, ok := config.LocationOf(address)
	if !ok {
		return location, term.Usagef("--%s is not a store: write sqlite:///path/oauth.db, "+
			"postgres://user:password@host/name or mysql://user:password@host/name", flag)
	}
	return location, nil
}

func copyStore(ctx context.Context, from, to service.StoreLocation, out io.Writer) (err error) {
	source, err := from.OpenWith(persistence.OpenExisting)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	prints, err := seal.NewKeyRing(source).SecretFingerprints()
	if err != nil {
		return fmt.Errorf("the copy needs the server secret: %w", err)
	}
	if _, err := to.Migrate(); err != nil {
		return err
	}
	target, err := to.OpenWith(persistence.OpenExisting)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	_, _ = fmt.Fprintf(out, "from %s\nto   %s\n", from, to)
	err = persistence.Copy(ctx, source, target, func(table string, rows int) {
		_, _ = fmt.Fprintf(out, "%-16s %s\n", table, term.Count(rows, "row"))
	})
	if err == nil {
		err = target.VerifySecret(ctx, prints) // a service with another secret then refuses to start on the copy
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return errors.New("the copy was interrupted and has left nothing: run the same command again")
	case errors.Is(err, oauth.ErrOtherSecret):
		return fmt.Errorf(
			"copying the store: %w, so a service could not read the copy: name an empty database with --to", err)
	case err != nil:
		return fmt.Errorf("copying the store: %w", err)
	}
	next := fmt.Sprintf("copy the server secret, %s, to %s\nnext: start the service with that folder as data; clients "+
		"stay connected", from.SecretFile(), to.SecretFile())
	if to.IsServer() {
		next = fmt.Sprintf("give every replica the server secret, %s, as server-secret; it is not in the database\n"+
			"next: start every replica with database set to that server, as in --database %s; clients stay connected",
			from.SecretFile(), to)
	}
	_, _ = fmt.Fprintf(out, "Source and copy were compared and are equal.\n\nnext: %s\n"+
		"next: do not start a service on %s again: its new tokens would be missing in the copy\n", next, from)
	return nil
}
