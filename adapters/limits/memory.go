package limits

import (
	"context"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Memory is an oauth.WindowCounter in the memory of this process. It evicts the least recently
// counted window, and is safe for concurrent use.
type Memory struct {
	mu      sync.Mutex
	windows *lru.Cache[oauth.Digest, oauth.WindowCount]
}

var _ oauth.WindowCounter = (*Memory)(nil)

// NewMemory returns an empty counter.
func NewMemory() *Memory {
	return &Memory{windows: newCache[oauth.Digest, oauth.WindowCount](maxKeys)}
}

// Counts implements oauth.WindowCounter; it never fails.
func (m *Memory) Counts(_ context.Context, now time.Time, windows ...oauth.Window) ([]oauth.WindowCount, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := make([]oauth.WindowCount, 0, len(windows))
	for _, w := range windows {
		counts = append(counts, m.current(w, now))
	}
	return counts, nil
}

// Count implements oauth.WindowCounter; it never fails.
func (m *Memory) Count(_ context.Context, now time.Time, windows ...oauth.Window) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range windows {
		count := m.current(w, now)
		if count.Taken == 0 {
			count.Ends = now.Add(w.Length)
		}
		count.Taken++
		m.windows.Add(w.Name, count)
	}
	return nil
}

func (m *Memory) current(w oauth.Window, now time.Time) oauth.WindowCount {
	stored, _ := m.windows.Peek(w.Name)
	return w.Current(stored, now)
}

// SharedByReplicas implements oauth.WindowCounter.
func (m *Memory) SharedByReplicas() bool { return false }

func newCache[K comparable, V any](size int) *lru.Cache[K, V] {
	cache, _ := lru.New[K, V](size) // fails only for a size below one
	return cache
}
