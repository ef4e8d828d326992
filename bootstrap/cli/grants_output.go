package cli

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/domain/oauth"
)

// linesAligned is the number of lines whose columns are aligned, because the widths
// need all of them in memory.
const linesAligned = 1000

func printGrants(out io.Writer, listed iter.Seq2[oauth.Connection, error]) (shown shownGrants, err error) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for grant, err := range listed {
		if err == nil && shown.number%linesAligned == 0 {
			err = table.Flush()
			_, _ = fmt.Fprintln(table,
				"ID\tCLIENT\tNAME\tSERVER\tSUBJECT\tACCOUNT\tLAST USED")
		}
		if err != nil {
			return shown, errors.Join(err, table.Flush())
		}
		printGrant(table, grant)
		shown.number++
		if grant.CreatedAt.After(shown.newest) {
			shown.newest = grant.CreatedAt
		}
	}
	if shown.number == 0 {
		_, err := fmt.Fprintln(out, "No active grants match.")
		return shown, err
	}
	if err := table.Flush(); err != nil {
		return shown, fmt.Errorf("printing the grants: %w", err)
	}
	return shown, nil
}

func printGrant(table io.Writer, grant oauth.Connection) {
	used := "never"
	if !grant.LastUsedAt.IsZero() {
		used = term.Time(grant.LastUsedAt)
	}
	server := column(grant.ResourceName)
	if grant.ResourceName == "" {
		server = columnEnd(grant.Resource.String())
	}
	_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", oauth.ShortID(grant.ID), column(grant.ClientHost),
		column(grant.ClientName), server, column(grant.Subject), column(grant.Account), used)
}

// columnWidth keeps the tables of grants and calls within 120 columns.
const columnWidth = 16

// columnEnd returns the end of a text that is too long for a column: URLs differ there.
func columnEnd(text string) string {
	if runes := []rune(text); len(runes) > columnWidth {
		return "…" + string(runes[len(runes)-columnWidth+1:])
	}
	return text
}

// column returns a text on one line, cut to the width of a column.
func column(text string) string {
	if runes := []rune(onOneLine(text)); len(runes) > columnWidth {
		return string(runes[:columnWidth-1]) + "…"
	}
	return onOneLine(text)
}

// onOneLine replaces control characters, because clients and sites choose the names.
func onOneLine(text string) string {
	return term.OrDash(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text))
}

// listedGrant is the JSON form of a grant.
type listedGrant struct {
	ID         string     `json:"id"`
	Client     string     `json:"client"`
	Name       string     `json:"name"`
	Resource   string     `json:"resource"`
	Server     string     `json:"resource_name"`
	Subject    string     `json:"subject"`
	Account    string     `json:"account"`
	Scopes     []string   `json:"scopes"`
	Waiting    bool       `json:"waiting"`
	CreatedAt  time.Time  `json:"created_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
	EndsBy     time.Time  `json:"ends_by"`
	Latest     time.Time  `json:"ends_at_latest"`
}

// described iterates over the JSON forms of the grants.
func described(listed iter.Seq2[oauth.Connection, error]) iter.Seq2[listedGrant, error] {
	return func(yield func(listedGrant, error) bool) {
		for grant, err := range listed {
			if !yield(describe(grant), err) {
				return
			}
		}
	}
}

func describe(grant oauth.Connection) listedGrant {
	one := listedGrant{
		ID:        grant.ID,
		Client:    grant.ClientHost,
		Name:      grant.ClientName,
		Resource:  grant.Resource.String(),
		Server:    grant.ResourceName,
		Subject:   grant.Subject,
		Account:   grant.Account,
		Scopes:    strings.Fields(grant.Scopes.String()),
		Waiting:   grant.Waiting,
		CreatedAt: grant.CreatedAt,
		EndsBy:    grant.EndsBy,
		Latest:    grant.EndsAtLatest,
	}
	if !grant.LastUsedAt.IsZero() {
		one.LastUsedAt = &grant.LastUsedAt
	}
	return one
}
