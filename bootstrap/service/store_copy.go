package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/adapters/persistence/maintenance"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
)

func newStoreCopy(out io.Writer) *cobra.Command {
	config := defaultConfig()
	var from, to string
	command := &cobra.Command{
		Use: "copy", Short: "Copy what is kept to another database, of any kind", Args: noArguments,
		Long: "Copy grants, tokens and the trace from one store to another, and compare both in the end. Stop the services on the source first:\n" +
			"a SQLite file cannot be written while it is copied, so that they would answer 503, and a server that was written meanwhile is\n" +
			"refused in the end. The schema of the destination is brought up to date first; apart from that it has to be empty. A copy that was\n" +
			"interrupted, by Ctrl-C for example, is completed by the same command.\n\n" +
			"Without --from the SQLite file in data is copied, and without --to it goes to the server of the setting database, so that no\n" +
			"password need be on the command line. A store on a server is read with the file of server-secret.",
		Example: "  PASTEPORT_DATABASE=postgres://pasteport:password@db.internal/pasteport pasteport store copy --data /var/lib/pasteport\n" +
			"  pasteport store copy --from sqlite:///var/lib/pasteport/oauth.db --to mysql://pasteport:password@db.internal/pasteport\n" +
			"  pasteport store copy --from postgres://db.internal/pasteport --to sqlite:///var/lib/pasteport/oauth.db",
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, err := config.placeOf("from", from, config.fileStore())
			if err != nil {
				return err
			}
			target, err := config.placeOf("to", to, config.store())
			if err != nil {
				return err
			}
			if to == "" && target.url == "" {
				return usageError{errors.New("nobody has said where to copy it: add --to, or set database")}
			}
			return copyStore(cmd.Context(), source, target, newTerminal(out))
		},
	}
	config.addSettings(command, storeSettings...)
	command.Flags().StringVar(&from, "from", "", "store to copy: sqlite:///path/oauth.db, postgres://… or mysql://…; the SQLite file in data")
	command.Flags().StringVar(&to, "to", "", "where it goes, written like --from; the server of database")
	return command
}

// placeOf does not repeat the address, which may hold a password.
func (c Config) placeOf(flag, address string, otherwise storePlace) (storePlace, error) {
	named, err := url.Parse(address)
	switch {
	case address == "":
		return otherwise, nil
	case persistence.IsServer(address):
		return storePlace{url: address, options: c.Database.options(c.DataDir)}, nil
	case err == nil && named.Scheme == "sqlite" && named.Host == "" && filepath.IsAbs(named.Path):
		return storePlace{file: named.Path}, nil
	}
	return storePlace{}, usageError{fmt.Errorf("--%s names no store: write sqlite:///path/oauth.db, postgres://user:password@host/name or mysql://user:password@host/name", flag)}
}

func copyStore(ctx context.Context, from, to storePlace, t terminal) (err error) {
	source, err := from.openExisting()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	prints, err := seal.NewKeyRing(source).SecretFingerprints()
	if err != nil {
		return fmt.Errorf("%w: without the server secret nobody could use the copy: restore it, or name it with server-secret", err)
	}
	if err := to.makeForCopy(); err != nil {
		return err
	}
	target, err := to.openExisting()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	t.say("from %s\nto   %s\n", from, to)
	err = persistence.Copy(ctx, source, target, t.copyStep)
	t.clearLine()
	if err == nil {
		err = target.Agree(ctx, prints) // so that a service that is started with another secret does not begin to use it
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return errors.New("the copy was interrupted: the same command completes it")
	case errors.Is(err, oauth.ErrOtherSecret):
		return fmt.Errorf("copying the store: %w, so a service could open nothing of the copy: give an empty one with --to", err)
	case err != nil:
		return fmt.Errorf("copying the store: %w", err)
	}
	t.sayWhatIsNext(from, to)
	return nil
}

// copyStep rewrites one line for those who watch, and leaves one for each table.
func (t terminal) copyStep(step maintenance.CopyStep) {
	t.clearLine()
	switch done := step.Rows == step.Of; {
	case step.Comparing && t.colour:
		t.say("comparing %s", step.Table)
	case !step.Comparing && done:
		t.say("%-16s %d rows\n", step.Table, step.Rows)
	case !step.Comparing && t.colour:
		t.say("%-16s %d of %d rows", step.Table, step.Rows, step.Of)
	}
}

func (t terminal) sayWhatIsNext(from, to storePlace) {
	t.say("Everything was read back from both sides, and is the same.\n\n")
	if to.url == "" {
		t.say("next: copy the server secret, %s, to %s\nnext: start the service with that folder as data; clients notice nothing\n", from.secretFile(), to.secretFile())
	} else {
		t.say("next: give every replica the server secret, %s, as server-secret; it is not in the database\n"+
			"next: start every replica with database set to that server, as in --database %s; clients notice nothing\n", from.secretFile(), to)
	}
	t.say("next: start no service on %s any more: what it would give out is not in the copy\n", from)
}
