package storespec

import (
	"context"
	"reflect"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// closure is a change of a store.
type closure = func(*oauth.Authorizations) error

// flawed is a correct store with replaceable methods.
type flawed struct {
	*memory
	find   func(ctx context.Context, of oauth.Selection) (oauth.Authorizations, error)
	change func(ctx context.Context, of oauth.Selection, change closure) error
	record func(ctx context.Context, uses map[string]oauth.Use) error
	use    func(ctx context.Context, assertion oauth.Digest, forgetAfter time.Time) error
	delete func(ctx context.Context, now time.Time) (int, error)
	ended  func(ctx context.Context, since time.Time) (oauth.Ended, error)

	listsNoCodes, listsLocked bool
}

func (f *flawed) Find(ctx context.Context, of oauth.Selection) (oauth.Authorizations, error) {
	return f.find(ctx, of)
}

func (f *flawed) Change(ctx context.Context, of oauth.Selection, change closure) error {
	return f.change(ctx, of, change)
}

func (f *flawed) RecordUse(ctx context.Context, uses map[string]oauth.Use) error {
	return f.record(ctx, uses)
}

func (f *flawed) UseOnce(ctx context.Context, assertion oauth.Digest, forgetAfter time.Time) error {
	return f.use(ctx, assertion, forgetAfter)
}

func (f *flawed) DeleteExpired(ctx context.Context, now time.Time) (int, error) {
	return f.delete(ctx, now)
}

// tamper changes every code and grant that the store returns.
func tamper(code func(*oauth.CodeSnapshot), grant func(*oauth.GrantSnapshot)) func(*flawed) {
	return func(f *flawed) {
		f.find = func(ctx context.Context, of oauth.Selection) (spoiled oauth.Authorizations, err error) {
			found, err := f.memory.Find(ctx, of)
			for _, one := range found.Codes {
				row := one.Snapshot()
				code(&row)
				spoiled.Codes = append(spoiled.Codes, oauth.RestoreCode(row))
			}
			for _, one := range found.Grants {
				row := one.Snapshot()
				grant(&row)
				spoiled.Grants = append(spoiled.Grants, oauth.RestoreGrant(row))
			}
			return spoiled, err
		}
	}
}

func tamperGrant(spoil func(*oauth.GrantSnapshot)) func(*flawed) {
	return tamper(func(*oauth.CodeSnapshot) {}, spoil)
}

func tamperCode(spoil func(*oauth.CodeSnapshot)) func(*flawed) {
	return tamper(spoil, func(*oauth.GrantSnapshot) {})
}

// changing wraps what the store does with selections that applies chooses.
func changing(applies func(of oauth.Selection) bool,
	with func(f *flawed, ctx context.Context, of oauth.Selection, change closure) error) func(*flawed) {
	return func(f *flawed) {
		f.change = func(ctx context.Context, of oauth.Selection, change closure) error {
			if applies(of) {
				return with(f, ctx, of, change)
			}
			return f.memory.Change(ctx, of, change)
		}
	}
}

func ofCode(of oauth.Selection) bool  { return of.Code != "" }
func ofGrant(of oauth.Selection) bool { return of.Grant != "" }
func ofHost(of oauth.Selection) bool  { return of.Host != nil }
func ofAny(oauth.Selection) bool      { return true }

// outsideTransaction reads, applies the change and writes without any lock in between.
func outsideTransaction(f *flawed, ctx context.Context, of oauth.Selection, change closure) error {
	all, err := f.memory.Find(ctx, of)
	if err == nil {
		err = change(&all)
	}
	if err != nil {
		return err
	}
	return f.transaction(func(next contents) error {
		next.put(all)
		return nil
	})
}

// outsideForGrants starts again when a code has changed, but writes over the grants whatever they
// are.
func outsideForGrants(f *flawed, ctx context.Context, of oauth.Selection, change closure) error {
	all, err := f.memory.Find(ctx, of)
	if err == nil {
		err = change(&all)
	}
	if err != nil {
		return err
	}
	err = f.transaction(func(next contents) error {
		for _, code := range all.Codes {
			if next.codes[code.ID()].State != oauth.IssuedCode {
				return oauth.ErrUnavailable
			}
		}
		next.put(oauth.Authorizations{Codes: all.Codes})
		for _, grant := range all.Grants {
			next.grants[grant.ID()] = grant.Snapshot()
		}
		return nil
	})
	if err != nil {
		return outsideForGrants(f, ctx, of, change)
	}
	return nil
}

// nonZero keeps the former values of fields that a change empties.
func nonZero(f *flawed, ctx context.Context, of oauth.Selection, change closure) error {
	return f.memory.Change(ctx, of, func(all *oauth.Authorizations) error {
		var before []oauth.GrantSnapshot
		for _, grant := range all.Grants {
			before = append(before, grant.Snapshot())
		}
		if err := change(all); err != nil {
			return err
		}
		for i, grant := range all.Grants {
			after := grant.Snapshot()
			now, then := reflect.ValueOf(&after).Elem(), reflect.ValueOf(before[i])
			for i := range now.NumField() {
				if now.Field(i).IsZero() {
					now.Field(i).Set(then.Field(i))
				}
			}
			all.Grants[i] = oauth.RestoreGrant(after)
		}
		return nil
	})
}

// onWhatItChanged runs a colliding closure again on what its first run has changed.
func onWhatItChanged(f *flawed, ctx context.Context, of oauth.Selection, change closure) error {
	all, err := f.memory.Find(ctx, of)
	if err != nil || len(all.Grants) == 0 {
		return f.memory.Change(ctx, of, change)
	}
	before := all.Grants[0].Snapshot()
	if err := change(&all); err != nil {
		return err
	}
	return f.transaction(func(next contents) error {
		if !reflect.DeepEqual(next.grants[before.ID], before) {
			_ = change(&all)
		}
		next.put(all)
		return nil
	})
}
