package persistence

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
)

// copiedTable is a table that is copied as a whole. The fingerprint of the server secret concerns
// the running service only.
type copiedTable struct{ name, key string }

var copiedTables = []copiedTable{
	{"authorization_codes", "id"},
	{"grants", "id"},
	{"used_assertions", "digest"},
	{"trace_steps", "number"},
	{"client_documents", "digest"},
}

// copiedAtOnce keeps every statement short, below the number of values that SQLite binds and the
// length that MySQL takes.
const copiedAtOnce = 200

var (
	errSame     = errors.New("the source and the destination are the same store: name two")
	errNotEmpty = errors.New("the destination has to be empty: drop and create the database, or delete the file, and " +
		"start again")
	errDiffer = errors.New("they differ: stop every service on the source, and start the copy again")
)

// Copy copies the codes, grants, used assertions, trace and client documents to an empty store in
// one transaction, and compares both sides before its end. It calls copied after each table. A
// SQLite source cannot be written meanwhile; on a server Copy notices in the end that the source
// was written.
func Copy(ctx context.Context, from, to *Store, copied func(table string, rows int)) error {
	if _, err := from.compareSecret(from.reader.WithContext(ctx)); err != nil {
		return err
	}
	if err := refuseSame(ctx, from, to); err != nil {
		return err
	}
	return from.undisturbed(ctx, func(source *gorm.DB) error {
		return to.undisturbed(ctx, func(target *gorm.DB) error {
			if err := refuseUsed(target); err != nil {
				return err
			}
			for _, table := range copiedTables {
				rows, err := table.copy(ctx, source, target)
				if err != nil {
					return fmt.Errorf("copying %s: %w", table.name, err)
				}
				copied(table.name, rows)
			}
			for _, table := range copiedTables {
				if err := table.compare(source, target); err != nil {
					return fmt.Errorf("comparing %s: %w", table.name, err)
				}
			}
			if to.engine.renumber == "" {
				return nil
			}
			return failed("numbering the trace", target.Exec(to.engine.renumber).Error)
		})
	})
}

// refuseSame leaves a mark in one store and looks for it in the other, because one database has
// many addresses.
func refuseSame(ctx context.Context, from, to *Store) error {
	mark := newMark()
	target := to.writer.WithContext(ctx)
	if err := target.Create(&mark).Error; err != nil {
		return failed("writing to the destination", err)
	}
	var seen int64
	err := from.reader.WithContext(ctx).Model(&mark).Where("digest = ?", mark.Digest).Count(&seen).Error
	err = errors.Join(failed("reading the source", err),
		failed("writing to the destination", target.Delete(&mark).Error))
	if err == nil && seen > 0 {
		return errSame
	}
	return err
}

// undisturbed runs work in a transaction for as long as it takes. Other processes cannot write to a
// file meanwhile; a server goes on.
func (s *Store) undisturbed(ctx context.Context, work func(tx *gorm.DB) error) error {
	if s.file != nil {
		return s.transaction(ctx, work)
	}
	return inTransaction(s.writer.WithContext(ctx), work)
}

// refuseUsed refuses a destination that a service has used, or that holds anything.
func refuseUsed(target *gorm.DB) error {
	for _, table := range append(slices.Clone(copiedTables), copiedTable{name: fingerprintRow{}.TableName()}) {
		var rows int64
		if err := target.Table(table.name).Limit(1).Count(&rows).Error; err != nil {
			return failed("reading the destination", err)
		}
		if rows > 0 {
			return fmt.Errorf("%s has rows: %w", table.name, errNotEmpty)
		}
	}
	return nil
}

// eachBatch reads the whole table in the order of its key.
func (t copiedTable) eachBatch(db *gorm.DB, use func(rows []map[string]any) error) error {
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

func (t copiedTable) copy(ctx context.Context, source, target *gorm.DB) (copied int, err error) {
	err = t.eachBatch(source, func(rows []map[string]any) error {
		copied += len(rows)
		return errors.Join(ctx.Err(), target.Table(t.name).Create(rows).Error)
	})
	return copied, err
}

// compare reads the table back from both sides, which may order keys differently.
func (t copiedTable) compare(source, target *gorm.DB) error {
	byKey := func(a, b map[string]any) int { return strings.Compare(fmt.Sprint(a[t.key]), fmt.Sprint(b[t.key])) }
	var read, there int64
	err := t.eachBatch(source, func(rows []map[string]any) error {
		keys := make([]any, len(rows))
		for i, row := range rows {
			keys[i] = row[t.key]
		}
		var copied []map[string]any
		if err := target.Table(t.name).Where(t.key+" IN ?", keys).Find(&copied).Error; err != nil {
			return err
		}
		rows = slices.SortedFunc(slices.Values(rows), byKey)
		slices.SortFunc(copied, byKey)
		if !reflect.DeepEqual(rows, copied) {
			return errDiffer
		}
		read += int64(len(rows))
		return nil
	})
	if err == nil {
		err = target.Table(t.name).Count(&there).Error
	}
	if err == nil && read != there {
		err = errDiffer
	}
	return err
}
