package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/adapters/audit"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/domain/oauth"
)

func newAuditList(out io.Writer) *cobra.Command {
	var subject, client string
	var since time.Duration
	list := &cobra.Command{
		Use:   "list FILE…",
		Short: "Print the calls in audit files as a table",
		Example: "  pasteport audit list --since 24h /var/log/pasteport/calls.jsonl\n" +
			"  pasteport audit list --subject ada --client claude.ai calls.jsonl.1 calls.jsonl",
		Args: needsAuditFiles,
		RunE: func(_ *cobra.Command, names []string) error {
			table := term.NewTable(out, "TIME", "GRANT", "SUBJECT", "ACCOUNT", "APP", "CALL", "OUTCOME", "MS")
			found := false
			for _, name := range names {
				file, err := os.Open(name)
				if err != nil {
					return fmt.Errorf("opening an audit file: %w", err)
				}
				defer file.Close()
				lines := json.NewDecoder(file)
				for {
					var call struct { // the members of a line that the table needs
						Time                                                               time.Time
						Grant, Subject, Account, Client, App, Method, Name, Outcome, Event string
						Duration                                                           float64 `json:"duration_ms"`
					}
					if err := lines.Decode(&call); errors.Is(err, io.EOF) {
						break
					} else if err != nil {
						return errors.Join(table.Flush(), fmt.Errorf("reading a call in %s: %w", name, err))
					}
					id, _ := url.Parse(call.Client)
					isOf := client == "" || strings.EqualFold(client, call.App) || client == call.Client ||
						id != nil && strings.EqualFold(client, id.Host)
					isCall, isRecent := call.Event == "", since == 0 || time.Since(call.Time) <= since
					if isCall && isOf && isRecent && isSubject(subject, call.Subject) {
						found = true
						table.Row(term.Time(call.Time), oauth.ShortID(call.Grant), column(call.Subject),
							column(call.Account), column(cmp.Or(call.App, call.Client)),
							column(cmp.Or(call.Name, call.Method)), call.Outcome, fmt.Sprintf("%.0f", call.Duration))
					}
				}
			}
			if !found {
				_, err := fmt.Fprintln(out, "No calls match.")
				return err
			}
			return table.Flush()
		},
	}
	list.Flags().StringVar(&subject, "subject", "", "only calls of this person")
	list.Flags().StringVar(&client, "client", "", "only calls of the app with this name, ID or host of the ID")
	list.Flags().DurationVar(&since, "since", 0, "only calls of this time until now, such as 24h")
	return list
}

func needsAuditFiles(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return term.Usagef("%q needs the names of files", command.CommandPath())
	}
	return nil
}

func newAuditVerify(out io.Writer) *cobra.Command {
	var expect string
	verify := &cobra.Command{
		Use:   "verify FILE…",
		Short: "Find changed, missing, moved and added lines in audit files",
		Long: "Check the files that a service has written. Name all files of the time that you want " +
			"to check, in any order:\n" +
			"they are sorted by the times of their first lines. Each problem is printed with its file and line, and " +
			"the exit code is then 1.\n\n" +
			"Lines that are missing at the end, and a chain that was written anew from its beginning, show only by " +
			"the hash of the last line:\n" +
			"note the one that this command prints, in another place, and pass it as --expect for the same files.",
		Example: "  pasteport audit verify /var/log/pasteport/calls.jsonl*\n" +
			"  pasteport audit verify --expect 3b1c… calls.jsonl.1",
		Args: func(command *cobra.Command, args []string) error {
			if err := needsAuditFiles(command, args); err != nil {
				return err
			}
			if expect != "" && !isHash.MatchString(expect) {
				return term.Usagef("--expect is not a hash of 64 hexadecimal digits")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, names []string) (err error) {
			var sources []audit.Source
			for _, name := range names {
				file, openErr := os.Open(name)
				if openErr != nil {
					return fmt.Errorf("opening an audit file: %w", openErr)
				}
				defer func() { err = errors.Join(err, file.Close()) }()
				sources = append(sources, audit.Source{Name: name, Reader: file})
			}
			report, err := audit.Verify(expect, sources...)
			if err != nil {
				return err
			}
			for _, note := range report.Notes {
				_, _ = fmt.Fprintf(out, "note: %s\n", note)
			}
			t := term.New(out)
			for _, problem := range report.Problems[:min(len(report.Problems), maxProblems)] {
				t.Printf("%s\n", t.Red(problem.String()))
			}
			if more := len(report.Problems) - maxProblems; more > 0 {
				_, _ = fmt.Fprintf(out, "and %d more\n", more)
			}
			_, _ = fmt.Fprintf(out, "%s, numbers %d to %d, last hash %s\n", term.Count(report.Lines, "line"),
				report.First, report.Last, report.Hash)
			if problems := len(report.Problems); problems > 0 {
				return fmt.Errorf("%s in the audit", term.Count(problems, "problem"))
			}
			return nil
		},
	}
	verify.Flags().StringVar(&expect, "expect", "", "hash that the last line must have")
	return verify
}

var isHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

const maxProblems = 20 // to print
