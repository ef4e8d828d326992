// Package raw writes the same rows as Pasteport's store directly through the driver: one connection and prepared statements.
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
	mu                  sync.Mutex
	pool                *sql.DB
	grant, code, tokens *copier
	begin, commit       *sql.Stmt
	redeem, rotate      *sql.Stmt
}

const settings = "?_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)&_pragma=foreign_keys(ON)"

// The updates of a code exchange and of a refresh.
const (
	redeem = "UPDATE authorization_codes SET state = 'redeemed', redeemed_at = ?, forget_after = ?, host_box = NULL, host_wrap = NULL WHERE id = ?"
	rotate = "UPDATE grants SET verified_at = ?, idle_end = ?, generation = generation + 1, refresh_digest = ?, successor_box = ?, grace_end = ?, host_wrap = ? WHERE id = ?"
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
	var failures [7]error
	d.begin, failures[0] = d.pool.Prepare("BEGIN IMMEDIATE")
	d.commit, failures[1] = d.pool.Prepare("COMMIT")
	d.redeem, failures[2] = d.pool.Prepare(redeem)
	d.rotate, failures[3] = d.pool.Prepare(rotate)
	d.code, failures[4] = copierOf(d.pool, "authorization_codes", 1, "id", "digest")
	d.grant, failures[5] = copierOf(d.pool, "grants", 1, "id", "refresh_digest", "host_wrap")
	d.tokens, failures[6] = copierOf(d.pool, "secrets", 2, "digest", "grant_id", "kind", "predecessor", "forget_after")
	return errors.Join(failures[:]...)
}

// Close closes the file.
func (d *Database) Close() error { return d.pool.Close() }

// Together runs work in one transaction. It does not roll back on failure, because the benchmark ends then.
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
func (d *Database) Redeem(id string, access, refresh Digest) error {
	_, err := d.redeem.Exec(inMillis(0), inMillis(24*time.Hour), id)
	return errors.Join(err, d.grant.copy(id, refresh[:], random(60)), d.issue(id, access, refresh, nil))
}

// Rotate adds the next tokens of a grant.
func (d *Database) Rotate(id string, access, refresh, replaced Digest) error {
	_, err := d.rotate.Exec(inMillis(0), inMillis(idle), refresh[:], random(88), inMillis(time.Minute), random(60), id)
	return errors.Join(err, d.issue(id, access, refresh, replaced[:]))
}

func (d *Database) issue(id string, access, refresh Digest, replaced []byte) error {
	return d.tokens.copy(access[:], id, "ppa_", nil, inMillis(time.Hour), refresh[:], id, "ppr_", replaced, nil)
}

const idle = 30 * 24 * time.Hour

func inMillis(after time.Duration) int64 { return time.Now().Add(after).UnixMilli() }

// leaveOne creates the schema, one code and one grant.
func leaveOne(file string) error {
	store, err := persistence.OpenSQLite(file)
	if err != nil {
		return err
	}
	code, digest := NewCode()
	return errors.Join(
		store.AddCode(context.Background(), code, code.Supersedes),
		store.RedeemCode(context.Background(), digest, func(code *oauth.AuthorizationCode) (*oauth.AccessGrant, error) { return newGrant(code.ID()), nil }),
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
		ID: NewID(), Digest: digest, CodeChallenge: challenge, ClientID: client, ClientName: "Client", AuthMethod: "none", RedirectURI: callback,
		Resource: resource, Scopes: scopes, Subject: "ada", State: "issued", CreatedAt: now, ExpiresAt: now.Add(time.Hour), ForgetAfter: now.Add(time.Hour),
		HostPrint: make([]byte, 16), HostBox: random(80), HostWrap: random(60), // of one person
	}), Digest(digest)
}

func newGrant(id string) *oauth.AccessGrant {
	now, access, refresh := time.Now(), random(32), random(32)
	return oauth.RestoreGrant(oauth.GrantSnapshot{
		ID: id, ClientID: client, ClientName: "Client", AuthMethod: "none", RedirectURI: callback, Resource: resource, Scopes: scopes, Subject: "ada",
		State: "active", CreatedAt: now, VerifiedAt: now, IdleEnd: now.Add(idle), AbsoluteEnd: now.Add(2 * idle), ForgetAfter: now.Add(idle), Generation: 1,
		RefreshDigest: refresh, HostPrint: make([]byte, 16), HostBox: random(80), HostWrap: random(60),
	}, oauth.SecretSnapshot{Digest: access, Grant: id, Kind: string(oauth.AccessTokenSecret), ForgetAfter: now.Add(time.Hour)},
		oauth.SecretSnapshot{Digest: refresh, Grant: id, Kind: string(oauth.RefreshTokenSecret), Generation: 1})
}

// NewID returns an id like a ticket's: the time followed by random bytes.
func NewID() string { return fmt.Sprintf("%012x%x", time.Now().UnixMilli(), random(10)) }

func random(size int) []byte {
	bytes := make([]byte, size)
	_, _ = rand.Read(bytes) // never fails
	return bytes
}
