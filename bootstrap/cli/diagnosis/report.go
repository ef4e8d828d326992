package diagnosis

import (
	"fmt"
	"strings"

	"github.com/pasteport/pasteport/adapters/doctor"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
)

// reporter prints findings as they come, or all of them as JSON at the end.
type reporter struct {
	out, progress term.Terminal
	asJSON        bool
	skipped       string // reason that was printed last
}

// begin shows the current question as progress.
func (r *reporter) begin(question string) {
	if r.progress.Colour {
		r.progress.Printf("\r\x1b[K… %s", question)
	}
}

func (r *reporter) end(f doctor.Finding) {
	r.progress.ClearLine()
	if r.asJSON || f.Status == doctor.Skipped && f.Seen == r.skipped {
		return
	}
	status := fmt.Sprintf("%-8s", f.Status)
	switch f.Status {
	case doctor.OK:
		status = r.out.Green(status)
	case doctor.Warning:
		status = r.out.Bold(status)
	case doctor.Failure:
		status = r.out.Red(status)
	case doctor.Skipped:
		r.skipped = f.Seen
	}
	r.out.Printf("%s %-22s %s\n", status, f.ID, f.Seen)
	if f.Mend != "" {
		r.out.Printf("         check:   %s\n         why:     %s\n         affects: %s\n         fix:     %s\n", f.Asks, f.Why, strings.Join(f.Breaks, "; "), f.Mend)
	}
}

// conclude prints the summary, and fails when a check has failed.
func (r *reporter) conclude(d doctor.Diagnosis) error {
	d.Next = next(d)
	failures := d.Count(doctor.Failure)
	if r.asJSON {
		if err := term.PrintJSON(r.out.Out, d); err != nil {
			return err
		}
	} else {
		r.out.Printf("\n%d ok, %d warnings, %d failures, %d skipped\nnext: %s\n",
			d.Count(doctor.OK), d.Count(doctor.Warning), failures, d.Count(doctor.Skipped), d.Next)
	}
	if failures > 0 {
		return fmt.Errorf("%d of %d checks failed", failures, len(d.Checks))
	}
	return nil
}

// next recommends what to do after reading the report.
func next(d doctor.Diagnosis) string {
	if worst := d.First(d.Result); worst.Mend != "" {
		return "mend " + worst.ID + ", then run doctor again: " + worst.Mend
	}
	if skipped := d.First(doctor.Skipped); skipped.ID != "" {
		return "clients should be able to log in, but the rest was skipped " + skipped.Seen
	}
	return "nothing to do: clients can connect to " + d.URL
}
