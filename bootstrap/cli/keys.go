package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/oauth"
)

func newKeysList(out io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	return config.Table().Flags(&cobra.Command{
		Use:   "list",
		Short: "List the server secrets with their ages",
		Args:  term.NoArguments,
		Long: "Show when each server secret was generated and replaced, never the secret itself. A replaced secret " +
			"is needed until the last\n" +
			"grant that may use it has ended: grant-ttl after the replacement.",
		Example: "  pasteport keys list --data /var/lib/pasteport",
		RunE: func(*cobra.Command, []string) error {
			return config.StoreLocation().UseExisting(func(store *persistence.Store) error {
				kept, err := store.KeptSecrets()
				if err != nil {
					return err
				}
				table := term.NewTable(out, "GENERATED", "REPLACED", "NEEDED UNTIL")
				for i, secret := range kept { // newest first
					replaced, needed := "in use", ""
					if i > 0 {
						at := kept[i-1].GeneratedAt
						replaced, needed = term.Time(at), term.Time(at.Add(config.GrantTTL))
					}
					table.Row(term.Time(secret.GeneratedAt), replaced, needed)
				}
				return table.Flush()
			})
		},
	}, slices.Concat(service.StoreSettings, []string{"grant-ttl"})...)
}

func newKeysRotate(out io.Writer) *cobra.Command {
	config := service.DefaultConfig()
	var age time.Duration
	rotate := &cobra.Command{
		Use:   "rotate",
		Short: "Generate a new server secret, and keep the old ones",
		Args:  term.NoArguments,
		Long: "Generate a new server secret. Running services on the data folder use it immediately, without a " +
			"restart. Connections, tokens\n" +
			"and open consent pages that were made under older secrets stay valid. Secrets that were replaced a year " +
			"ago are forgotten,\n" +
			"because no grant lives that long; --forget-old forgets more. People and the site cannot find and end " +
			"grants under a\n" +
			"forgotten secret. Their tokens are unknown at once, so their clients connect again.",
		Example: "  pasteport keys rotate --data /var/lib/pasteport\n" +
			"  pasteport keys rotate --forget-old=4320h   forget secrets that were replaced 180 days ago\n" +
			"  pasteport keys rotate --forget-old         forget all old secrets, after a leak: clients reconnect",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if age < 0 {
				return term.Usagef("--forget-old is %s: write an age such as 4320h", age)
			}
			return config.StoreLocation().UseExisting(func(store *persistence.Store) error {
				before, err := store.KeptSecrets()
				if replacesLost := errors.Is(err, fs.ErrNotExist) && age == 0; err != nil && !replacesLost {
					return err
				}
				now := time.Now()
				if err := store.ReplaceSecret(cmd.Context(), now, now.Add(-age)); err != nil {
					return err
				}
				kept, err := store.KeptSecrets()
				if err != nil {
					return err
				}
				next := "next: back up oauth.db.secret again, together with oauth.db\n"
				if age < oauth.MaxGrantTTL && len(kept) <= max(1, len(before)) { // at least one was forgotten
					next += "next: apps that connected under a forgotten secret have to connect again; \"pasteport " +
						"grants end --all\" removes their connections from the lists\n"
				}
				_, err = fmt.Fprintf(out, "A new server secret is in use. Earlier secrets that can still be read: "+
					"%d.\n%s", len(kept)-1, next)
				return err
			})
		},
	}
	config.Table().Flags(rotate, service.StoreSettings...)
	rotate.Flags().DurationVar(&age, "forget-old", oauth.MaxGrantTTL,
		"forget secrets that were replaced this long ago; without an age, all old ones")
	rotate.Flags().Lookup("forget-old").NoOptDefVal = "0s"
	return rotate
}
