package service

import (
	"github.com/pasteport/pasteport/adapters/audit"
	"github.com/pasteport/pasteport/domain/oauth"
)

// AuditConfig says where the calls of MCP servers are recorded. Without Log and File they are not.
type AuditConfig struct {
	Log       bool   `set:"audit-log" doc:"log each call to an MCP server on one line"`
	File      string `set:"audit-file" unset:"none" path:"file" example:"/var/log/pasteport/calls.jsonl" doc:"file to which each call to an MCP server is appended, in JSON Lines; reopened on SIGHUP"`
	Arguments bool   `set:"audit-arguments" doc:"record the arguments of calls too, not only their SHA-256"`
}

// check reports settings that have no effect. Calls are logged at level info.
func (a AuditConfig) check(logLevel string) error {
	switch {
	case a.Log && (logLevel == "warn" || logLevel == "error"):
		return oauth.NewMistake("log-level", "is %s, but audit-log logs calls at level info: set info, or use "+
			"only audit-file", logLevel)
	case a.Arguments && a.File == "" && !a.Log:
		return oauth.NewMistake("audit-arguments", "is set, but neither audit-file nor audit-log is: leave it out, or "+
			"choose one")
	}
	return nil
}

// openAudit opens the audit file.
func (s *Service) openAudit(config Config) (err error) {
	a := config.Audit
	if a.File == "" {
		return nil
	}
	s.audit, err = audit.Open(audit.Options{Path: a.File, Arguments: a.Arguments, Logger: config.Logger})
	if err != nil {
		return mistaken("audit-file", "", err)
	}
	s.closers = append(s.closers, s.audit.Close)
	s.operations.metrics.Counter("pasteport_audit_lines_total", "Lines that were written to the audit file.",
		func() float64 { return float64(s.audit.Written()) })
	return nil
}

// ReopenAudit opens the audit file again if it was renamed. If that fails, lines go on in the
// renamed file.
func (s *Service) ReopenAudit() {
	if s.audit == nil {
		return
	}
	if err := s.audit.Reopen(); err != nil {
		s.logger.Error("cannot reopen the audit file; lines go on in the renamed one", "error", err)
		return
	}
	s.logger.Info("reopened the audit file")
}
