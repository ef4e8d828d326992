package storespec

import (
	"context"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// counted is a window in memory.
type counted struct {
	taken int
	ends  time.Time
}

func (c counted) at(w oauth.Window, now time.Time) counted {
	if left := c.ends.Sub(now); left <= 0 || left > w.Length+10*time.Second {
		return counted{ends: now.Add(w.Length)}
	}
	return c
}

func (m *memory) Take(_ context.Context, now time.Time, windows ...oauth.Window) (wait time.Duration, err error) {
	return wait, m.transaction(func(next contents) error {
		for _, w := range windows {
			next.counted[w.Name] = next.counted[w.Name].at(w, now)
			if c := next.counted[w.Name]; c.taken >= w.Limit {
				wait = max(wait, c.ends.Sub(now))
			}
		}
		if wait > 0 {
			return nil
		}
		for _, w := range windows {
			c := next.counted[w.Name]
			next.counted[w.Name] = counted{c.taken + 1, c.ends}
		}
		return nil
	})
}

func (m *memory) GiveBack(_ context.Context, taken time.Time, windows ...oauth.Window) error {
	return m.transaction(func(next contents) error {
		for _, w := range windows {
			if c := next.counted[w.Name]; c.taken > 0 && !c.ends.After(taken.Add(w.Length+10*time.Second)) {
				next.counted[w.Name] = counted{c.taken - 1, c.ends}
			}
		}
		return nil
	})
}

func (m *memory) SharedByReplicas() bool { return true }

func (f *flawed) Take(ctx context.Context, now time.Time, windows ...oauth.Window) (time.Duration, error) {
	return f.take(ctx, now, windows...)
}

func (f *flawed) GiveBack(ctx context.Context, taken time.Time, windows ...oauth.Window) error {
	return f.giveBack(ctx, taken, windows...)
}

// spoilWindow changes every window on its way in.
func spoilWindow(spoil func(w *oauth.Window)) func(*flawed) {
	return func(f *flawed) {
		f.take = func(ctx context.Context, now time.Time, windows ...oauth.Window) (time.Duration, error) {
			for i := range windows {
				spoil(&windows[i])
			}
			return f.memory.Take(ctx, now, windows...)
		}
	}
}

// countingFlaws are those of a WindowCounter.
var countingFlaws = map[string]func(f *flawed){
	"counts one too many":  spoilWindow(func(w *oauth.Window) { w.Limit++ }),
	"begins anew too late": spoilWindow(func(w *oauth.Window) { w.Length += time.Millisecond }),
	"takes all for one":    spoilWindow(func(w *oauth.Window) { w.Name = oauth.Digest{} }),
	"believes a clock that was ahead": func(f *flawed) {
		var latest time.Time
		f.take = func(ctx context.Context, now time.Time, windows ...oauth.Window) (time.Duration, error) {
			if now.After(latest) {
				latest = now
			}
			return f.memory.Take(ctx, latest, windows...)
		}
	},
	"believes the slowest clock": func(f *flawed) {
		f.take = func(ctx context.Context, now time.Time, windows ...oauth.Window) (time.Duration, error) {
			if f.kept.counted[windows[0].Name].ends.Sub(now) > windows[0].Length {
				delete(f.kept.counted, windows[0].Name)
			}
			return f.memory.Take(ctx, now, windows...)
		}
	},
	"counts on some of the windows": func(f *flawed) {
		f.take = func(ctx context.Context, now time.Time, windows ...oauth.Window) (time.Duration, error) {
			for _, w := range windows {
				if wait, err := f.memory.Take(ctx, now, w); wait > 0 || err != nil {
					return wait, err
				}
			}
			return 0, nil
		}
	},
	"looks, then counts": func(f *flawed) {
		met := newMeeting()
		f.take = func(ctx context.Context, now time.Time, windows ...oauth.Window) (time.Duration, error) {
			f.mutex.Lock()
			full := f.kept.counted[windows[0].Name].taken >= windows[0].Limit
			f.mutex.Unlock()
			met.join()
			for i := range windows {
				windows[i].Limit = 1000
			}
			if full {
				return time.Minute, nil
			}
			return f.memory.Take(ctx, now, windows...)
		}
	},
	"gives nothing back": func(f *flawed) {
		f.giveBack = func(context.Context, time.Time, ...oauth.Window) error { return nil }
	},
	"gives back what is none of it": func(f *flawed) {
		f.giveBack = func(ctx context.Context, taken time.Time, windows ...oauth.Window) error {
			return f.memory.GiveBack(ctx, taken.Add(time.Hour), windows...)
		}
	},
	"gives back more than there was": func(f *flawed) {
		f.giveBack = func(ctx context.Context, taken time.Time, windows ...oauth.Window) error {
			for _, w := range windows {
				f.kept.counted[w.Name] = counted{f.kept.counted[w.Name].taken - 1, taken.Add(w.Length)}
			}
			return nil
		}
	},
	"keeps windows": func(f *flawed) {
		f.forget = func(ctx context.Context, now time.Time) (int, error) {
			before := f.kept.counted
			forgotten, err := f.memory.DeleteExpired(ctx, now)
			f.kept.counted = before
			return forgotten, err
		}
	},
}
