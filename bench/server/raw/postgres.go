package raw

import (
	"database/sql"
	"errors"
	"strconv"
	"strings"

	"github.com/pasteport/pasteport/adapters/persistence"
)

// Postgres is a database on PostgreSQL with Pasteport's schema. Every write is one statement, which
// is a transaction of its own.
type Postgres struct {
	exec                    Exec
	code, grant             *template
	approve, redeem, rotate string
}

// Exec runs a statement and returns the number of rows that it has changed. It is given, so that
// programs without PostgreSQL do not contain its driver.
type Exec func(statement string, values ...any) (changed int64, err error)

// OpenPostgres adds one code and one grant, which all others copy, to a new store. It closes the
// store and db.
func OpenPostgres(store *persistence.Store, db *sql.DB, exec Exec) (*Postgres, error) {
	if err := leaveOne(store); err != nil {
		return nil, err
	}
	code, err := templateOf(db, "authorization_codes", codeColumns...)
	if err != nil {
		return nil, err
	}
	grant, err := templateOf(db, "grants", grantColumns...)
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	return &Postgres{
		exec:    exec,
		code:    code,
		grant:   grant,
		approve: numbered("INSERT INTO authorization_codes VALUES (" + code.parameters() + ")"),
		redeem: numbered("WITH spent AS (" + redeem + " RETURNING id) " +
			"INSERT INTO grants SELECT " + grant.parameters() + " FROM spent"),
		rotate: numbered(rotate),
	}, nil
}

// numbered replaces each ? by its number, as PostgreSQL expects.
func numbered(statement string) string {
	for i := 1; strings.Contains(statement, "?"); i++ {
		statement = strings.Replace(statement, "?", "$"+strconv.Itoa(i), 1)
	}
	return statement
}

// Approve adds a code.
func (p *Postgres) Approve(id string, code Digest, challenge string) error {
	_, err := p.exec(p.approve, p.code.copy(id, code[:], challenge)...)
	return err
}

// Redeem redeems a code and adds its grant with the first tokens. It reports false for a code that
// is not valid.
func (p *Postgres) Redeem(id string, code Digest, challenge string, refresh Digest) (redeemed bool, err error) {
	values := append(redemption(id, code, challenge), p.grant.copy(firstTokens(id, refresh)...)...)
	changed, err := p.exec(p.redeem, values...)
	return changed == 1, err
}

// Rotate adds the next tokens of a grant, which has refreshed before as often as it remembers. It
// reports false for a refresh token that is not valid.
func (p *Postgres) Rotate(id string, presented, next Digest) (rotated bool, err error) {
	changed, err := p.exec(p.rotate, nextTokens(id, presented, next)...)
	return changed == 1, err
}
