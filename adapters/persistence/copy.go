package persistence

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"
)

// copied are the tables that are copied as a whole. The table secret_witness is not among them,
// because the next service that runs on the copy fills it.
var copied = append(slices.Clone(expiring), keyedTable{"attempts", "id"})

// copiedAtOnce keeps every statement short, below the number of values that SQLite binds and the
// length that MySQL takes.
const copiedAtOnce = 200

var errDiffer = errors.New("they differ: stop every service on the source, and start the copy again")

// Copy copies the codes, grants, used assertions, trace and client documents to an empty store in
// one transaction, and compares both sides before its end. It calls report after each table. A
// SQLite source cannot be written meanwhile; on a server Copy notices in the end that the source
// was written.
func Copy(ctx context.Context, from, to *Store, report func(table string, rows int)) error {
	if err := from.compareSecret(from.reader.WithContext(ctx)); err != nil {
		return err
	}
	for _, table := range append(slices.Clone(copied), keyedTable{name: "secret_witness"}) {
		var rows int64
		if err := to.reader.WithContext(ctx).Table(table.name).Limit(1).Count(&rows).Error; err != nil {
			return failed("reading the destination", err)
		}
		if rows > 0 {
			return fmt.Errorf("%s has rows: the destination has to be empty: name a new file, or a new database on "+
				"the server", table.name)
		}
	}
	return from.longTransaction(ctx, func(source *gorm.DB) error {
		return to.longTransaction(ctx, func(target *gorm.DB) error {
			for _, table := range copied {
				count := 0
				err := table.eachBatch(source, func(rows []map[string]any) error {
					count += len(rows)
					return errors.Join(ctx.Err(), target.Table(table.name).Create(rows).Error)
				})
				if err != nil {
					return fmt.Errorf("copying %s: %w", table.name, err)
				}
				report(table.name, count)
			}
			for _, table := range copied {
				if err := table.compare(source, target); err != nil {
					return fmt.Errorf("comparing %s: %w", table.name, err)
				}
			}
			return nil
		})
	})
}

// eachBatch reads the whole table in the order of its key.
func (t keyedTable) eachBatch(db *gorm.DB, use func(rows []map[string]any) error) error {
	for page := db.Table(t.name); ; {
		var rows []map[string]any
		if err := page.Order(t.key).Limit(copiedAtOnce).Find(&rows).Error; err != nil || len(rows) == 0 {
			return err
		}
		if err := use(rows); err != nil {
			return err
		}
		page = db.Table(t.name).Where(t.key+" > ?", rows[len(rows)-1][t.key])
	}
}

func (t keyedTable) compare(source, target *gorm.DB) error {
	here, err := t.sum(source)
	there, errThere := t.sum(target)
	if err = errors.Join(err, errThere); err == nil && here != there {
		err = errDiffer
	}
	return err
}

// sum adds the hashes of all rows, because two databases may order keys differently. Equal rows
// have equal JSON, because every driver returns a value as an int64, a string, a []byte or nil.
func (t keyedTable) sum(db *gorm.DB) (sum uint64, err error) {
	err = t.eachBatch(db, func(rows []map[string]any) error {
		for _, row := range rows {
			text, err := json.Marshal(row)
			if err != nil {
				return err
			}
			hash := sha256.Sum256(text)
			sum += binary.BigEndian.Uint64(hash[:])
		}
		return nil
	})
	return sum, err
}
