package persistence

import (
	"errors"
	"fmt"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/pasteport/pasteport/adapters/persistence/internal/drivers"
	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
)

// engine is what differs between the databases that a Store can be in.
type engine struct {
	name       string
	driver     string               // the package that has it; "" for the one that is always there
	server     bool                 // reached over a network and shared by replicas, so that rows are locked and not a file
	schema     []string             // word for word, what the schema's words mean here
	find       string               // the question of every bearer check
	drop       string               // the secrets of a list
	join       string               // reads what is in front of it first
	lock       func(*gorm.DB) error // lets one process migrate at a time
	unlock     func(*gorm.DB) error // what the end of a transaction does not
	free       func(*gorm.DB) error // secrets of the foreign key to their grant, and of its index
	durable    func(*gorm.DB) error // refuses settings under which an answered commit can be lost
	statements bool                 // GORM prepares them; the driver does not
	clock      string               // asks a server for its time in milliseconds
	countAgain string               // ends the statement of Count, for rows that exist
	renumber   string               // continues the numbers of the trace behind those that were copied, where that does not follow by itself
}

// ddl is a statement of the schema in this engine's words.
func (e engine) ddl(statement string) string {
	statement = strings.NewReplacer(e.schema...).Replace(statement)
	if e.name == mysqlName && strings.HasPrefix(statement, "CREATE INDEX") { // it knows no index of some rows
		statement, _, _ = strings.Cut(statement, " WHERE ")
	}
	return statement
}

func (e engine) deleteSecrets() string {
	return fmt.Sprintf(e.drop, strings.Replace(expiredSecrets, "{join}", e.join, 1))
}

// locking reads rows that nobody else changes until the transaction ends.
func (e engine) locking(tx *gorm.DB) *gorm.DB {
	if e.server {
		return tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate})
	}
	return tx
}

// The errors that are told apart, by engine.
const (
	pgUnique       = "23505"
	pgSerialize    = "40001"
	pgDeadlock     = "40P01"
	pgStalePlan    = "0A000" // another replica has brought the schema up to date
	pgNoTable      = "42P01"
	mysqlNoTable   = "1146"
	mysqlUnique    = "1062"
	mysqlDeadlock  = "1213"
	mysqlTableHere = "1050"
	mysqlFieldHere = "1060"
	mysqlKeyHere   = "1061"
	mysqlNoField   = "1054"
	mysqlNoKey     = "1176"
)

func isDuplicate(err error) bool {
	code := drivers.Code(err)
	return sqlite.IsDuplicate(err) || code == pgUnique || code == mysqlUnique
}

// errOvertaken is for what another transaction has done between two steps of this one.
var errOvertaken = errors.New("another transaction was faster")

// overtaken is failed for a row that was not there when the transaction looked a moment before.
func overtaken(err error, doing string) error {
	if isDuplicate(err) {
		return errors.Join(failed(doing, err), errOvertaken)
	}
	return failed(doing, err)
}

// collides reports that the same work may succeed when it is done once more from the beginning.
func collides(err error) bool {
	switch drivers.Code(err) {
	case pgSerialize, pgDeadlock, pgStalePlan, mysqlDeadlock:
		return true
	}
	return errors.Is(err, errOvertaken)
}

func isMissingTable(err error) bool {
	code := drivers.Code(err)
	return sqlite.IsMissingTable(err) || code == pgNoTable || code == mysqlNoTable
}
