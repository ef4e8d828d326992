package application

import (
	"context"

	"github.com/pasteport/pasteport/domain/trace"
)

// Sweep deletes expired rows and old trace steps (H6) and returns their number. No answer to a client depends on it (I21).
func (s *Server) Sweep(ctx context.Context) (int, error) {
	now := s.now()
	rows, err := s.ports.Store.DeleteExpired(ctx, now)
	if err != nil || s.ports.Trace == nil {
		return rows, err
	}
	steps, err := s.ports.Trace.ForgetSteps(ctx, now.Add(-trace.Memory), trace.Capacity)
	return rows + steps, err
}
