// Package raw writes the same rows as Pasteport's store directly through the driver, by prepared
// statements. A code or refresh token is spent by comparing and swapping its row.
package raw

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
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
	grant, code    copier
	begin, commit  *sql.Stmt
	redeem, rotate *sql.Stmt
}

const settings = "?_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)&_pragma=foreign_keys(ON)"

// The updates of a code exchange and of a refresh. They change no row if the code or token is
// spent.
const (
	redeem = `UPDATE authorization_codes SET version = version + 1, state = 'redeemed', redeemed_at = ?,
		forget_after = ?, host_box = NULL, host_wrap = NULL
		WHERE id = ? AND digest = ? AND code_challenge = ? AND state = 'issued' AND expires_at > ?`
	rotate = `UPDATE grants SET version = version + 1, verified_at = ?, idle_end = ?, generation = generation + 1,
		refresh_digest = ?, rotations = ?, issued_access = issued_access + 1, access_tokens = ?, host_wrap = ?
		WHERE id = ? AND refresh_digest = ? AND state = 'active' AND idle_end > ?`
)

// The columns in which the codes and the grants differ.
var (
	codeColumns  = []string{"id", "digest", "code_challenge"}
	grantColumns = []string{"id", "refresh_digest", "access_tokens", "host_wrap"}
)

// Open creates the schema, and one code and grant that all others copy.
func Open(file string) (*Database, error) {
	store, err := persistence.OpenSQLite(file)
	if err != nil {
		return nil, err
	}
	if err := leaveOne(store); err != nil {
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
	d.code, failures[4] = copierOf(d.pool, "authorization_codes", codeColumns...)
	d.grant, failures[5] = copierOf(d.pool, "grants", grantColumns...)
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
func (d *Database) Approve(id string, code Digest, challenge string) error {
	return d.code.add(id, code[:], challenge)
}

// Redeem redeems a code and adds its grant with the first tokens. It reports false for a code that
// is not valid.
func (d *Database) Redeem(id string, code Digest, challenge string, refresh Digest) (redeemed bool, err error) {
	redeemed, err = changed(d.redeem.Exec(redemption(id, code, challenge)...))
	if redeemed {
		err = d.grant.add(firstTokens(id, refresh)...)
	}
	return redeemed, err
}

// Rotate adds the next tokens of a grant, which has refreshed before as often as it remembers. It
// reports false for a refresh token that is not valid.
func (d *Database) Rotate(id string, presented, next Digest) (rotated bool, err error) {
	return changed(d.rotate.Exec(nextTokens(id, presented, next)...))
}

func changed(result sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	count, err := result.RowsAffected()
	return count == 1, err
}

// redemption returns the values of redeem.
func redemption(id string, code Digest, challenge string) []any {
	now := inMillis(0)
	return []any{now, inMillis(24 * time.Hour), id, code[:], challenge, now}
}

// firstTokens returns the values of grantColumns.
func firstTokens(id string, refresh Digest) []any {
	return []any{id, refresh[:], document(accessToken), random(wrap)}
}

// nextTokens returns the values of rotate.
func nextTokens(id string, presented, next Digest) []any {
	now := inMillis(0)
	return []any{
		now,
		inMillis(idle),
		next[:],
		document(4 * rotation),
		document(8 * accessToken),
		random(wrap),
		id,
		presented[:],
		now,
	}
}

// Sizes of what a grant keeps, in bytes.
const (
	wrap        = 60
	accessToken = 4 + 32 + 8 + 8 + 1 + 1 + wrap
	rotation    = 4 + 32 + 4 + 8 + 2 + 148
)

// document returns random bytes as a JSON document.
func document(size int) string { return `"` + base64.RawURLEncoding.EncodeToString(random(size)) + `"` }

const idle = 30 * 24 * time.Hour

func inMillis(after time.Duration) int64 { return time.Now().Add(after).UnixMilli() }

// leaveOne adds one code and one grant to a new store, and closes it.
func leaveOne(store *persistence.Store) error {
	code, _ := NewCode()
	of := oauth.Selection{Code: code.ID()}
	add := func(found *oauth.Authorizations) error {
		found.Codes = append(found.Codes, code)
		found.Grants = append(found.Grants, newGrant(code.ID()))
		return nil
	}
	return errors.Join(store.Change(context.Background(), of, add), store.Close())
}

const (
	client   = "https://client.example/client.json"
	callback = "http://127.0.0.1:4321/callback"
	resource = "https://cms.example/mcp"
	scopes   = "mcp offline_access"

	// Challenge is the code challenge of NewCode.
	Challenge = "hsyEji9XbGzoj5c85_UveU5p3NWYo8VzqQAwigcF2tE"
)

// NewCode returns a code with a value in every column that an approval fills, and its digest.
func NewCode() (*oauth.AuthorizationCode, Digest) {
	now, digest := time.Now(), random(32)
	return oauth.RestoreCode(oauth.CodeSnapshot{
		ConsentSnapshot: newConsent(NewID(), "issued", now, time.Hour),
		Digest:          digest,
		CodeChallenge:   Challenge,
		ExpiresAt:       now.Add(time.Hour),
	}), Digest(digest)
}

func newConsent(id, state string, now time.Time, kept time.Duration) oauth.ConsentSnapshot {
	return oauth.ConsentSnapshot{
		ID:          id,
		ClientID:    client,
		ClientName:  "Client",
		AuthMethod:  "none",
		RedirectURI: callback,
		Resource:    resource,
		Scopes:      scopes,
		Subject:     "ada",
		State:       state,
		CreatedAt:   now,
		ForgetAfter: now.Add(kept),
		HostPrint:   make([]byte, 16), // of one person
		HostBox:     random(80),
		HostWrap:    random(wrap),
		HostKey:     random(32),
	}
}

func newGrant(id string) *oauth.AccessGrant {
	now := time.Now()
	return oauth.RestoreGrant(oauth.GrantSnapshot{
		ConsentSnapshot: newConsent(id, "active", now, idle),
		VerifiedAt:      now,
		IdleEnd:         now.Add(idle),
		AbsoluteEnd:     now.Add(2 * idle),
		Generation:      1,
		RefreshDigest:   random(32),
		IssuedAccess:    1,
		AccessTokens: []oauth.AccessToken{
			{
				Number:    1,
				Digest:    Digest(random(32)),
				Wrap:      random(wrap),
				ExpiresAt: now.Add(time.Hour),
			},
		},
	})
}

// IDLength is the length of an id.
const IDLength = 32

// NewID returns an id like a ticket's: the time followed by random bytes.
func NewID() string { return fmt.Sprintf("%012x%x", time.Now().UnixMilli(), random(10)) }

func random(size int) []byte {
	bytes := make([]byte, size)
	_, _ = rand.Read(bytes) // never fails
	return bytes
}
