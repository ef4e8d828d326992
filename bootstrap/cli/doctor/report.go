package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
)

// status is the result of a check. Only a failure prevents clients from connecting.
type status string

const (
	statusOK status = "ok"
	warning  status = "warning"
	failure  status = "failure"
	skipped  status = "skipped"
)

// finding is the outcome of one check. Why and Mend (the fix) are set for warnings and failures
// only.
type finding struct {
	ID      string        `json:"id"`
	Asks    string        `json:"asks"`
	Status  status        `json:"status"`
	Seen    string        `json:"seen"`
	Why     string        `json:"why,omitempty"`
	Mend    string        `json:"mend,omitempty"`
	Clients []clientGroup `json:"clients,omitempty"` // of the check clients.login
}

// diagnosis is the report. Result is the worst status of the checks that were not skipped.
type diagnosis struct {
	URL    string    `json:"url,omitempty"`
	Result status    `json:"result"`
	Checks []finding `json:"checks"`
	Next   string    `json:"next"`
}

// add appends and prints a finding, and makes its status the result if it is worse.
func (d *diagnosis) add(f finding, r *reporter) {
	d.Checks = append(d.Checks, f)
	if f.Status == failure || f.Status == warning && d.Result == statusOK {
		d.Result = f.Status
	}
	r.print(f)
}

func (d *diagnosis) count(s status) (n int) {
	for _, f := range d.Checks {
		if f.Status == s {
			n++
		}
	}
	return n
}

// first returns the first finding with this status, which is the first to fix, or an empty one.
func (d *diagnosis) first(s status) finding {
	if i := slices.IndexFunc(d.Checks, func(f finding) bool { return f.Status == s }); i >= 0 {
		return d.Checks[i]
	}
	return finding{}
}

func ok(seen string, values ...any) finding {
	return finding{Status: statusOK, Seen: fmt.Sprintf(seen, values...)}
}

func skip(seen string, values ...any) finding {
	return finding{Status: skipped, Seen: fmt.Sprintf(seen, values...)}
}

func warn(mend, seen string, values ...any) finding {
	return finding{Status: warning, Mend: mend, Seen: fmt.Sprintf(seen, values...)}
}

func fail(mend, seen string, values ...any) finding {
	return finding{Status: failure, Mend: mend, Seen: fmt.Sprintf(seen, values...)}
}

// reporter prints findings as they come, or all of them as JSON at the end.
type reporter struct {
	out     term.Terminal
	asJSON  bool
	skipped string // reason that was printed last
}

// print prints a finding.
func (r *reporter) print(f finding) {
	if r.asJSON || f.Status == skipped && f.Seen == r.skipped {
		return
	}
	label := fmt.Sprintf("%-8s", f.Status)
	switch f.Status {
	case statusOK:
		label = r.out.Green(label)
	case warning:
		label = r.out.Bold(label)
	case failure:
		label = r.out.Red(label)
	case skipped:
		r.skipped = f.Seen
	}
	r.out.Printf("%s %-22s %s\n", label, f.ID, f.Seen)
	for _, group := range f.Clients {
		answer := group.Answer
		if group.Reason != "" {
			answer += ", " + group.Reason
		}
		r.out.Printf("         %s: %s\n", answer, strings.Join(group.Names, ", "))
	}
	if f.Mend != "" {
		r.out.Printf("         check: %s\n         why:   %s\n         fix:   %s\n", f.Asks, f.Why, f.Mend)
	}
}

// conclude prints the summary, and fails when a check has failed.
func (r *reporter) conclude(d diagnosis) error {
	failures := d.count(failure)
	if r.asJSON {
		if err := term.PrintJSON(r.out.Out, d); err != nil {
			return err
		}
	} else {
		r.out.Printf("\n%d ok, %s, %s, %d skipped\nnext: %s\n", d.count(statusOK),
			term.Count(d.count(warning), "warning"), term.Count(failures, "failure"), d.count(skipped), d.Next)
	}
	if failures > 0 {
		return fmt.Errorf("%d of %d checks failed", failures, len(d.Checks))
	}
	return nil
}
