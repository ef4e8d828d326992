package persistence

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	mostRecent = 1024
	recentFor  = time.Second // as late as the last use of a grant may be
)

// recent keeps rows that were read a moment ago, so that a change right after its
// checks does not read again. A row that is not the newest costs one more statement: its version
// keeps it from being written, and a change that refuses it or leaves it as it is runs again on the
// newest. Its last use may be a second old, as that of other replicas is in any case.
type recent[R any] struct {
	rows *lru.Cache[string, recentRow[R]]
}

type recentRow[R any] struct {
	row R
	at  time.Time
}

func newRecent[R any]() recent[R] {
	rows, _ := lru.New[string, recentRow[R]](mostRecent) // fails for a size that is not positive
	return recent[R]{rows}
}

func (r recent[R]) add(id string, row R) {
	if r.rows != nil { // a file has another cache of grants
		r.rows.Add(id, recentRow[R]{row, time.Now()})
	}
}

// take returns a row once.
func (r recent[R]) take(id string) (row R, found bool) {
	if r.rows == nil {
		return row, false
	}
	kept, found := r.rows.Peek(id)
	found = r.rows.Remove(id) && found && time.Since(kept.at) < recentFor
	return kept.row, found
}
