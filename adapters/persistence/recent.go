package persistence

import (
	"slices"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/pasteport/pasteport/domain/oauth"
)

// What is remembered is bounded by both: 8192 rows, and mostly two of a grant, an access token and a refresh token.
const (
	recentGrants  = 1024
	recentSecrets = 8 // of one grant
)

// recent remembers what the guard has read, for as long as it holds: a commit of this process renews what it changed, and one of another
// process makes it forget everything. It looks at the file after each question has begun, so nothing is ever stale.
type recent struct {
	watch *watch

	mu      sync.Mutex
	holds   version                             // what the rows below are true of
	rows    map[oauth.Digest]*foundRow          // which nobody writes into
	grants  *simplelru.LRU[string, []*foundRow] // the same rows
	writing bool
	before  version // what the file was like when this process began to write
}

func newRecent(to connector) *recent {
	r := &recent{watch: &watch{to: to}, rows: map[oauth.Digest]*foundRow{}}
	r.grants, _ = simplelru.NewLRU(recentGrants, r.forget) // fails only for a size below one
	return r
}

// read returns what is remembered, or what ask reads now.
func (r *recent) read(secret oauth.Digest, ask func() (*foundRow, error)) (*foundRow, error) {
	now, err := r.watch.atGlance()
	if err != nil { // the reader says what is wrong, in its own way
		return ask()
	}
	if row, found := r.remembered(now, secret); found {
		return row, nil
	}
	row, err := ask()
	if err == nil {
		r.remember(now, secret, row)
	}
	return row, err
}

func (r *recent) remembered(now version, secret oauth.Digest) (row *foundRow, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holds != now && !r.stillHolds() {
		return nil, false
	}
	return r.find(secret)
}

func (r *recent) find(secret oauth.Digest) (row *foundRow, found bool) {
	if row, found = r.rows[secret]; found {
		r.grants.Get(row.Grant.ID) // so that others go before it
	}
	return row, found
}

// stillHolds looks again for somebody who began to ask before the last commit: what it made true may answer them.
func (r *recent) stillHolds() bool {
	now, err := r.watch.version()
	if err != nil {
		return false
	}
	if r.holds != now && !r.writing { // otherwise it may be our own commit, about which settle knows more
		r.forgetAll(now)
		return false
	}
	return r.holds == now
}

// remember keeps a row that was read after the file was like this. What was committed since then makes it newer than that, never older.
func (r *recent) remember(was version, secret oauth.Digest, row *foundRow) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.rows[secret]; known || r.holds != was {
		return
	}
	r.add(row)
}

func (r *recent) add(row *foundRow) {
	others, _ := r.grants.Peek(row.Grant.ID)
	if len(others) == recentSecrets {
		r.forget(row.Grant.ID, others[:1])
		others = others[1:]
	}
	r.grants.Add(row.Grant.ID, append(others, row))
	r.rows[row.secret()] = row
}

// begin expects that this process has just got the lock to write, so that nobody else commits before settle.
func (r *recent) begin() {
	before, err := r.watch.version()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writing, r.before = true, before
	if err != nil {
		r.before = version{}
	}
}

// newest returns what is remembered to the transaction that begin was for: it alone can have made that older.
func (r *recent) newest(tx *changes, secret oauth.Digest) (row *foundRow, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if tx.everything || r.before != r.holds {
		return nil, false
	}
	row, found = r.find(secret)
	return row, found && !slices.ContainsFunc(tx.altered, func(a alteredGrant) bool { return a.id == row.Grant.ID })
}

// settle goes by what a transaction of this process has changed, which has ended and is not answered yet.
func (r *recent) settle(made *changes) {
	after, err := r.watch.atGlance()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writing = false
	switch {
	case err != nil:
		r.forgetAll(version{})
	case after == r.before && r.before == r.holds: // nothing was written
	case !made.wrote || made.everything || !after.follows(r.before): // somebody else may have committed since
		r.forgetAll(after)
	default:
		if r.before != r.holds {
			r.forgetAll(after)
		}
		for _, grant := range made.altered {
			r.renew(grant)
		}
		r.holds = after
	}
}

// renew remembers of a grant what was written, and nothing else.
func (r *recent) renew(grant alteredGrant) {
	r.grants.Remove(grant.id)
	for _, row := range grant.rows {
		r.add(row)
	}
}

func (r *recent) forgetAll(now version) {
	r.grants.Purge()
	r.holds = now
}

// forget is told of the rows that go.
func (r *recent) forget(_ string, rows []*foundRow) {
	for _, row := range rows {
		delete(r.rows, row.secret())
	}
}
