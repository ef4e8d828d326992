package service

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pasteport/pasteport/adapters/doctor"
)

// reporter tells the findings, as lines while they come or as JSON at the end.
type reporter struct {
	out, progress terminal
	asJSON        bool
	skipped       string // the reason that was told last
}

// begin tells a person who waits what is being asked.
func (r *reporter) begin(question string) {
	if r.progress.colour {
		r.progress.say("\r\x1b[K… %s", question)
	}
}

func (r *reporter) end(f doctor.Finding) {
	if r.progress.colour {
		r.progress.say("\r\x1b[K")
	}
	if r.asJSON || f.Status == doctor.Skipped && f.Seen == r.skipped {
		return
	}
	status := fmt.Sprintf("%-8s", f.Status)
	switch f.Status {
	case doctor.OK:
		status = r.out.green(status)
	case doctor.Warning:
		status = r.out.bold(status)
	case doctor.Failure:
		status = r.out.red(status)
	case doctor.Skipped:
		r.skipped = f.Seen
	}
	r.out.say("%s %-22s %s\n", status, f.ID, f.Seen)
	if f.Mend != "" {
		r.out.say("         asked:  %s\n         why:    %s\n         breaks: %s\n         mend:   %s\n", f.Asks, f.Why, strings.Join(f.Breaks, "; "), f.Mend)
	}
}

// conclude fails when a check has.
func (r *reporter) conclude(d doctor.Diagnosis) error {
	d.Next = next(d)
	failures := d.Count(doctor.Failure)
	if r.asJSON {
		encoder := json.NewEncoder(r.out.out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(d); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	} else {
		r.out.say("\n%d ok, %d warnings, %d failures, %d skipped\nnext: %s\n",
			d.Count(doctor.OK), d.Count(doctor.Warning), failures, d.Count(doctor.Skipped), d.Next)
	}
	if failures > 0 {
		return fmt.Errorf("%d of %d checks failed", failures, len(d.Checks))
	}
	return nil
}

// next is the step to take after reading the report.
func next(d doctor.Diagnosis) string {
	if worst := d.First(d.Result); worst.Mend != "" {
		return "mend " + worst.ID + ", then run doctor again: " + worst.Mend
	}
	if skipped := d.First(doctor.Skipped); skipped.ID != "" {
		return "clients should be able to log in, but the rest was skipped " + skipped.Seen
	}
	return "nothing to do: clients can connect to " + d.URL
}
