package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/adapters/audit"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
)

func newAuditVerify(out io.Writer) *cobra.Command {
	var expect string
	verify := &cobra.Command{
		Use:   "verify FILE…",
		Short: "Find changed, missing, moved and added lines in audit files",
		Long: "Check the files that a service with audit-chain has written. Name all files of the time that you want " +
			"to check, in any order:\n" +
			"they are sorted by the numbers of their lines. Each problem is printed with its file and line, and the " +
			"exit code is then 1.\n\n" +
			"Lines that are missing at the end, and a chain that was written anew from its beginning, show only by " +
			"the hash of the last line:\n" +
			"note the one that this command prints, in another place, and pass it as --expect for the same files.",
		Example: "  pasteport audit verify /var/log/pasteport/calls.jsonl*\n" +
			"  pasteport audit verify --expect 3b1c… calls.jsonl.1",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return term.Usagef("\"audit verify\" needs the names of files")
			}
			if expect != "" && !isHash.MatchString(expect) {
				return term.Usagef("--expect is not a hash of 64 hexadecimal digits")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, files []string) error { return verifyAudit(term.New(out), expect, files) },
	}
	verify.Flags().StringVar(&expect, "expect", "", "hash that the last line must have")
	return verify
}

var isHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

const maxProblems = 20 // that are printed

func verifyAudit(t term.Terminal, expect string, names []string) (err error) {
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
	for _, name := range names {
		if pending, found := audit.Pending(name); found {
			report.Notes = append(report.Notes, pending)
		}
	}
	for _, note := range report.Notes {
		t.Printf("note: %s\n", note)
	}
	for _, problem := range report.Problems[:min(len(report.Problems), maxProblems)] {
		t.Printf("%s\n", t.Red(problem.String()))
	}
	if more := len(report.Problems) - maxProblems; more > 0 {
		t.Printf("and %d more\n", more)
	}
	t.Printf("%s, numbers %d to %d, last hash %s\n", term.Count(report.Lines, "line"), report.First, report.Last,
		report.Hash)
	if problems := len(report.Problems); problems > 0 {
		return fmt.Errorf("%s in the audit", term.Count(problems, "problem"))
	}
	return nil
}
