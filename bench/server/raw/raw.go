// Package raw writes the same rows as Pasteport's store directly through the driver: one connection
// and prepared statements.
package raw

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Database is a SQLite file with Pasteport's schema and one writer at a time.
type Database struct {
	mu             sync.Mutex
	pool           *sql.DB
	grant, code    *copier
	begin, commit  *sql.Stmt
	redeem, rotate *sql.Stmt
}

const settings = "?_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)&_pragma=foreign_keys(ON)"

// The updates of a code exchange and of a refresh.
const (
	redeem = `UPDATE authorization_codes SET version = version + 1, state = 'redeemed', redeemed_at = ?,
		forget_after = ?, host_box = NULL, host_wrap = NULL WHERE id = ?`
	rotate = `UPDATE grants SET version = version + 1, verified_at = ?, idle_end = ?, generation = generation + 1,
		refresh_digest = ?, rotations = ?, issued_access = issued_access + 1, access_tokens = ?, host_wrap = ?
		WHERE id = ?`
)

// Open creates the schema, and one code and grant that all others copy.
func Open(file string) (*Database, error) {
	if err := leaveOne(file); err != nil {
		return nil, err
	}
	pool, err := sql.Open("sqlite", "file:"+file+settings)
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1)
	d := &Database{pool: pool}
	if err := d.prepare(); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return d, nil
}

func (d *Database) prepare() error {
	var failures [6]error
	d.begin, failures[0] = d.pool.Prepare("BEGIN IMMEDIATE")
	d.commit, failures[1] = d.pool.Prepare("COMMIT")
	d.redeem, failures[2] = d.pool.Prepare(redeem)
	d.rotate, failures[3] = d.pool.Prepare(rotate)
	d.code, failures[4] = copierOf(d.pool, "authorization_codes", "id", "digest")
	d.grant, failures[5] = copierOf(d.pool, "grants", "id", "refresh_digest", "access_tokens", "host_wrap")
	return errors.Join(failures[:]...)
}

// Close closes the file.
func (d *Database) Close() error { return d.pool.Close() }

// Together runs work in one transaction. It does not roll back on failure, because the benchmark
// ends then.
func (d *Database) Together(work func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err := d.begin.Exec()
	if err == nil {
		err = work()
	}
	if err == nil {
		_, err = d.commit.Exec()
	}
	return err
}

// Digest is the stored digest of a code or token.
type Digest = [32]byte

// Approve adds a code.
func (d *Database) Approve(id string, code Digest) error { return d.code.copy(id, code[:]) }

// Redeem redeems a code and adds its grant with the first tokens.
func (d *Database) Redeem(id string, refresh Digest) error {
	_, err := d.redeem.Exec(inMillis(0), inMillis(24*time.Hour), id)
	return errors.Join(err, d.grant.copy(id, refresh[:], random(accessToken), random(wrap)))
}

// Rotate adds the next tokens of a grant, which has refreshed before as often as it remembers.
func (d *Database) Rotate(id string, refresh Digest) error {
	_, err := d.rotate.Exec(inMillis(0), inMillis(idle), refresh[:], random(4*rotation), random(8*accessToken),
		random(wrap), id)
	return err
}

// Sizes of what a grant keeps, in bytes.
const (
	wrap        = 60
	accessToken = 4 + 32 + 8 + 8 + 1 + 1 + wrap
	rotation    = 4 + 32 + 4 + 8 + 2 + 148
)

const idle = 30 * 24 * time.Hour

func inMillis(after time.Duration) int64 { return time.Now().Add(after).UnixMilli() }

// leaveOne creates the schema, one code and one grant.
func leaveOne(file string) error {
	store, err := persistence.OpenSQLite(file)
	if err != nil {
		return err
	}
	code, _ := NewCode()
	redeem := func(code *oauth.AuthorizationCode) (*oauth.AccessGrant, error) { return newGrant(code.ID()), nil }
	return errors.Join(
		store.AddCode(context.Background(), code, code.Supersedes),
		store.RedeemCode(context.Background(), code.ID(), redeem),
		store.Close())
}

const (
	client    = "https://client.example/client.json"
	callback  = "http://127.0.0.1:4321/callback"
	resource  = "https://cms.example/mcp"
	scopes    = "mcp offline_access"
	challenge = "hsyEji9XbGzoj5c85_UveU5p3NWYo8VzqQAwigcF2tE"
)

// NewCode returns a code with a value in every column that an approval fills, and its digest.
func NewCode() (*oauth.AuthorizationCode, Digest) {
	now, digest := time.Now(), random(32)
	return oauth.RestoreCode(oauth.CodeSnapshot{
		ID:            NewID(),
		Digest:        digest,
		CodeChallenge: challenge,
		ClientID:      client,
		ClientName:    "Client",
		AuthMethod:    "none",
		RedirectURI:   callback,
		Resource:      resource,
		Scopes:        scopes,
		Subject:       "ada",
		State:         "issued",
		CreatedAt:     now,
		ExpiresAt:     now.Add(time.Hour),
		ForgetAfter:   now.Add(time.Hour),
		HostPrint:     make([]byte, 16),
		HostBox:       random(80),
		HostWrap:      random(wrap), // of one person
	}), Digest(digest)
}

func newGrant(id string) *oauth.AccessGrant {
	now := time.Now()
	return oauth.RestoreGrant(oauth.GrantSnapshot{
		ID:            id,
		ClientID:      client,
		ClientName:    "Client",
		AuthMethod:    "none",
		RedirectURI:   callback,
		Resource:      resource,
		Scopes:        scopes,
		Subject:       "ada",
		State:         "active",
		CreatedAt:     now,
		VerifiedAt:    now,
		IdleEnd:       now.Add(idle),
		AbsoluteEnd:   now.Add(2 * idle),
		ForgetAfter:   now.Add(idle),
		Generation:    1,
		RefreshDigest: random(32),
		IssuedAccess:  1,
		AccessTokens: []oauth.AccessTokenSnapshot{
			{
				Number:    1,
				Digest:    Digest(random(32)),
				Wrap:      random(wrap),
				ExpiresAt: now.Add(time.Hour),
			},
		},
		HostPrint: make([]byte, 16),
		HostBox:   random(80),
		HostWrap:  random(wrap),
	})
}

// NewID returns an id like a ticket's: the time followed by random bytes.
func NewID() string { return fmt.Sprintf("%012x%x", time.Now().UnixMilli(), random(10)) }

func random(size int) []byte {
	bytes := make([]byte, size)
	_, _ = rand.Read(bytes) // never fails
	return bytes
}
