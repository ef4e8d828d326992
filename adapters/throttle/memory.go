package throttle

import (
	"context"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/pasteport/pasteport/domain/oauth"
)

// maxWindows bounds the windows that are remembered; the least recently counted is forgotten first.
const maxWindows = 30_000

// Memory is an oauth.WindowCounter of this process alone. It is safe for concurrent use.
type Memory struct {
	mu      sync.Mutex
	windows *lru.Cache[oauth.Digest, oauth.WindowCount]
}

var _ oauth.WindowCounter = (*Memory)(nil)

// NewMemory returns a counter that has counted nothing.
func NewMemory() *Memory {
	return &Memory{windows: newCache[oauth.Digest, oauth.WindowCount](maxWindows)}
}

// Counts implements oauth.WindowCounter; it never fails.
func (m *Memory) Counts(_ context.Context, now time.Time, windows ...oauth.Window) ([]oauth.WindowCount, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := make([]oauth.WindowCount, 0, len(windows))
	for _, w := range windows {
		counts = append(counts, m.state(w, now))
	}
	return counts, nil
}

// Count implements oauth.WindowCounter; it never fails.
func (m *Memory) Count(_ context.Context, now time.Time, windows ...oauth.Window) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range windows {
		count := m.state(w, now)
		if count.Taken == 0 {
			count.Ends = now.Add(w.Length)
		}
		count.Taken++
		m.windows.Add(w.Name, count)
	}
	return nil
}

// state returns the zero value for a window that is over. A window with more than its length left was opened while the clock was ahead.
func (m *Memory) state(w oauth.Window, now time.Time) oauth.WindowCount {
	count, _ := m.windows.Peek(w.Name)
	if left := count.Ends.Sub(now); left <= 0 || left > w.Length {
		return oauth.WindowCount{}
	}
	return count
}

// SharedByReplicas implements oauth.WindowCounter.
func (m *Memory) SharedByReplicas() bool { return false }

func newCache[K comparable, V any](size int) *lru.Cache[K, V] {
	cache, _ := lru.New[K, V](size) // fails only for a size below one
	return cache
}
