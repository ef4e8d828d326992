package doctor

import "fmt"

// Status is how a check ended.
type Status string

// The four ways in which a check ends. Only a failure keeps somebody from connecting.
const (
	OK      Status = "ok"
	Warning Status = "warning"
	Failure Status = "failure"
	Skipped Status = "skipped"
)

// Finding is the outcome of one check. Why, Breaks and Mend are said of warnings and failures only.
type Finding struct {
	ID     string   `json:"id"`
	Asks   string   `json:"asks"`
	Status Status   `json:"status"`
	Seen   string   `json:"seen"`
	Why    string   `json:"why,omitempty"`
	Breaks []string `json:"breaks,omitempty"`
	Mend   string   `json:"mend,omitempty"`
}

// Diagnosis is everything that was found. Result is the worst of the checks that were not skipped.
type Diagnosis struct {
	URL    string    `json:"url"`
	Result Status    `json:"result"`
	Checks []Finding `json:"checks"`
	Next   string    `json:"next"`
}

func (d *Diagnosis) add(f Finding) {
	d.Checks = append(d.Checks, f)
	if f.Status == Failure || f.Status == Warning && d.Result == OK {
		d.Result = f.Status
	}
}

// Count tells how many checks ended in this way.
func (d Diagnosis) Count(status Status) (n int) {
	for _, f := range d.Checks {
		if f.Status == status {
			n++
		}
	}
	return n
}

// First is the first check that ended in this way, the one to mend first; empty when there is none.
func (d Diagnosis) First(status Status) Finding {
	for _, f := range d.Checks {
		if f.Status == status {
			return f
		}
	}
	return Finding{}
}

// verdict is what a check has seen, and how to mend it.
type verdict struct {
	status     Status
	seen, mend string
}

func ok(seen string, values ...any) verdict {
	return verdict{status: OK, seen: fmt.Sprintf(seen, values...)}
}

func skip(seen string, values ...any) verdict {
	return verdict{status: Skipped, seen: fmt.Sprintf(seen, values...)}
}

func warn(mend, seen string, values ...any) verdict {
	return verdict{status: Warning, mend: mend, seen: fmt.Sprintf(seen, values...)}
}

func fail(mend, seen string, values ...any) verdict {
	return verdict{status: Failure, mend: mend, seen: fmt.Sprintf(seen, values...)}
}
