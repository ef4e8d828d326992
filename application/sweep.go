package application

import "context"

// Sweep forgets what can no longer matter (H6) and returns how many rows went; no answer ever changes by it (I21).
func (s *Server) Sweep(ctx context.Context) (int, error) {
	return s.ports.Store.DeleteExpired(ctx, s.now())
}
