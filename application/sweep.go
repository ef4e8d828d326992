package application

import (
	"context"

	"github.com/pasteport/pasteport/domain/trace"
)

// Sweep forgets what can no longer matter (H6) and returns how many rows went; no answer ever changes by it (I21).
func (s *Server) Sweep(ctx context.Context) (int, error) {
	now := s.now()
	rows, err := s.ports.Store.DeleteExpired(ctx, now)
	if err != nil || s.ports.Trace == nil {
		return rows, err
	}
	steps, err := s.ports.Trace.ForgetSteps(ctx, now.Add(-trace.Memory), trace.Capacity)
	return rows + steps, err
}
