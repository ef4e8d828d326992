package doctor

import (
	"fmt"
)

// Status is the result of a check.
type Status string

// The results of a check. Only a failure prevents clients from connecting.
const (
	OK      Status = "ok"
	Warning Status = "warning"
	Failure Status = "failure"
	Skipped Status = "skipped"
)

// Finding is the outcome of one check. Why, Breaks and Mend (the fix) are set for warnings and
// failures only.
type Finding struct {
	ID     string   `json:"id"`
	Asks   string   `json:"asks"`
	Status Status   `json:"status"`
	Seen   string   `json:"seen"`
	Why    string   `json:"why,omitempty"`
	Breaks []string `json:"breaks,omitempty"`
	Mend   string   `json:"mend,omitempty"`

	Clients []ClientGroup `json:"clients,omitempty"` // of the check clients.login
}

// Diagnosis is the report of an examination. Result is the worst status of the checks that were not
// skipped.
type Diagnosis struct {
	URL    string    `json:"url,omitempty"`
	Result Status    `json:"result"`
	Checks []Finding `json:"checks"`
	Next   string    `json:"next"`
}

// Add appends a check, and makes its status the result if it is worse.
func (d *Diagnosis) Add(f Finding) {
	d.Checks = append(d.Checks, f)
	if f.Status == Failure || f.Status == Warning && d.Result == OK {
		d.Result = f.Status
	}
}

// Count returns the number of checks with this status.
func (d Diagnosis) Count(status Status) (n int) {
	for _, f := range d.Checks {
		if f.Status == status {
			n++
		}
	}
	return n
}

// First returns the first check with this status, which is the first to fix, or an empty Finding.
func (d Diagnosis) First(status Status) Finding {
	for _, f := range d.Checks {
		if f.Status == status {
			return f
		}
	}
	return Finding{}
}

// checkResult is the result of a check, with its observation and the fix.
type checkResult struct {
	status     Status
	seen, mend string
	clients    []ClientGroup
}

func ok(seen string, values ...any) checkResult {
	return checkResult{status: OK, seen: fmt.Sprintf(seen, values...)}
}

func skip(seen string, values ...any) checkResult {
	return checkResult{status: Skipped, seen: fmt.Sprintf(seen, values...)}
}

func warn(mend, seen string, values ...any) checkResult {
	return checkResult{status: Warning, mend: mend, seen: fmt.Sprintf(seen, values...)}
}

func fail(mend, seen string, values ...any) checkResult {
	return checkResult{status: Failure, mend: mend, seen: fmt.Sprintf(seen, values...)}
}

// Clients that a problem affects, as measured or reported in their public issues.
const (
	claudeCode   = "Claude Code"
	claude       = "claude.ai"
	chatGPT      = "ChatGPT"
	vsCode       = "VS Code"
	browsers     = "clients in a browser, like the MCP Inspector"
	goSDK        = "clients on the official Go SDK"
	tsSDK        = "clients on the official TypeScript SDK"
	oldTransport = "older clients that use HTTP with SSE"
)

var everyClient = []string{"every client"}
