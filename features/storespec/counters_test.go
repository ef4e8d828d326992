package storespec

import (
	"context"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// at returns the count of a window: zero when the window has ended, or was started while the clock
// was far ahead.
func (m *memory) at(w oauth.Window, now time.Time, kept contents) oauth.WindowCount {
	count := kept.counted[w.Name]
	if left := count.Ends.Sub(now); left <= 0 || left > w.Length+10*time.Second {
		return oauth.WindowCount{}
	}
	return count
}

func (m *memory) Counts(_ context.Context, now time.Time, windows ...oauth.Window) (counts []oauth.WindowCount,
	err error) {
	return counts, m.transaction(func(next contents) error {
		for _, w := range windows {
			counts = append(counts, m.at(w, now, next))
		}
		return nil
	})
}

func (m *memory) Count(_ context.Context, now time.Time, windows ...oauth.Window) error {
	return m.transaction(func(next contents) error {
		for _, w := range windows {
			count := m.at(w, now, next)
			if count.Taken == 0 {
				count.Ends = now.Add(w.Length)
			}
			count.Taken++
			next.counted[w.Name] = count
		}
		return nil
	})
}

func (m *memory) SharedByReplicas() bool { return true }

func (f *flawed) Counts(ctx context.Context, now time.Time, windows ...oauth.Window) ([]oauth.WindowCount, error) {
	return f.counts(ctx, now, windows...)
}

func (f *flawed) Count(ctx context.Context, now time.Time, windows ...oauth.Window) error {
	return f.count(ctx, now, windows...)
}

// spoilWindow changes every window that the store gets.
func spoilWindow(spoil func(w *oauth.Window)) func(*flawed) {
	return func(f *flawed) {
		f.counts = func(ctx context.Context, now time.Time, windows ...oauth.Window) ([]oauth.WindowCount, error) {
			spoiled := append([]oauth.Window(nil), windows...)
			for i := range spoiled {
				spoil(&spoiled[i])
			}
			return f.memory.Counts(ctx, now, spoiled...)
		}
		f.count = func(ctx context.Context, now time.Time, windows ...oauth.Window) error {
			spoiled := append([]oauth.Window(nil), windows...)
			for i := range spoiled {
				spoil(&spoiled[i])
			}
			return f.memory.Count(ctx, now, spoiled...)
		}
	}
}

// counterFlaws break the contract of oauth.WindowCounter.
var counterFlaws = map[string]func(f *flawed){
	"starts a new window too late": spoilWindow(func(w *oauth.Window) { w.Length += time.Millisecond }),
	"counts all windows as one":    spoilWindow(func(w *oauth.Window) { w.Name = oauth.Digest{} }),
	"counts by the latest clock": func(f *flawed) {
		var latest time.Time
		f.count = func(ctx context.Context, now time.Time, windows ...oauth.Window) error {
			if now.After(latest) {
				latest = now
			}
			return f.memory.Count(ctx, latest, windows...)
		}
	},
	"counts by the slowest clock": func(f *flawed) {
		f.count = func(ctx context.Context, now time.Time, windows ...oauth.Window) error {
			if f.kept.counted[windows[0].Name].Ends.Sub(now) > windows[0].Length {
				delete(f.kept.counted, windows[0].Name)
			}
			return f.memory.Count(ctx, now, windows...)
		}
	},
	"counts the first window only": func(f *flawed) {
		f.count = func(ctx context.Context, now time.Time, windows ...oauth.Window) error {
			return f.memory.Count(ctx, now, windows[0])
		}
	},
	"stops counting at the limit": func(f *flawed) {
		f.count = func(ctx context.Context, now time.Time, windows ...oauth.Window) error {
			if f.kept.counted[windows[0].Name].Taken >= windows[0].Limit {
				return nil
			}
			return f.memory.Count(ctx, now, windows...)
		}
	},
	"extends a window with each count": func(f *flawed) {
		f.count = func(ctx context.Context, now time.Time, windows ...oauth.Window) error {
			defer func() {
				for _, w := range windows {
					f.kept.counted[w.Name] = oauth.WindowCount{Taken: f.kept.counted[w.Name].Taken,
						Ends: now.Add(w.Length)}
				}
			}()
			return f.memory.Count(ctx, now, windows...)
		}
	},
	"returns counts in another order": func(f *flawed) {
		f.counts = func(ctx context.Context, now time.Time, windows ...oauth.Window) ([]oauth.WindowCount, error) {
			counts, err := f.memory.Counts(ctx, now, windows...)
			counts[0], counts[len(counts)-1] = counts[len(counts)-1], counts[0]
			return counts, err
		}
	},
	"counts when it is read": func(f *flawed) {
		f.counts = func(ctx context.Context, now time.Time, windows ...oauth.Window) ([]oauth.WindowCount, error) {
			_ = f.memory.Count(ctx, now, windows...)
			return f.memory.Counts(ctx, now, windows...)
		}
	},
	"counts outside of a transaction": func(f *flawed) {
		both := newBarrier()
		f.count = func(_ context.Context, now time.Time, windows ...oauth.Window) error {
			f.mutex.Lock()
			before := f.memory.at(windows[0], now, f.kept)
			f.mutex.Unlock()
			both.wait()
			f.mutex.Lock()
			defer f.mutex.Unlock()
			f.kept.counted[windows[0].Name] = oauth.WindowCount{Taken: before.Taken + 1,
				Ends: now.Add(windows[0].Length)}
			return nil
		}
	},
	"never deletes windows": func(f *flawed) {
		f.delete = func(ctx context.Context, now time.Time) (int, error) {
			before := f.kept.counted
			forgotten, err := f.memory.DeleteExpired(ctx, now)
			f.kept.counted = before
			return forgotten, err
		}
	},
}
