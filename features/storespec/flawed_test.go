package storespec

import (
	"context"
	"reflect"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// flawed is a correct store with replaceable methods.
type flawed struct {
	*memory
	add func(ctx context.Context, code *oauth.AuthorizationCode,
		supersede func(*oauth.AuthorizationCode) error) error
	code   func(ctx context.Context, id string) (*oauth.AuthorizationCode, error)
	redeem func(ctx context.Context, id string,
		redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) error
	grant    func(ctx context.Context, id string) (*oauth.AccessGrant, error)
	update   func(ctx context.Context, id string, change func(*oauth.AccessGrant) error) error
	record   func(ctx context.Context, uses map[string]oauth.Use) error
	list     func(ctx context.Context, host oauth.Fingerprint) (oauth.Authorizations, error)
	updateOf func(ctx context.Context, host oauth.Fingerprint, change func(oauth.Authorizations) error) error
	use      func(ctx context.Context, assertion oauth.Digest, forgetAfter time.Time) error
	delete   func(ctx context.Context, now time.Time) (int, error)
	ended    func(ctx context.Context, since time.Time) (oauth.Ended, error)
}

func (f *flawed) AddCode(ctx context.Context, code *oauth.AuthorizationCode,
	supersede func(*oauth.AuthorizationCode) error) error {
	return f.add(ctx, code, supersede)
}

func (f *flawed) Code(ctx context.Context, id string) (*oauth.AuthorizationCode, error) {
	return f.code(ctx, id)
}

func (f *flawed) RedeemCode(ctx context.Context, known *oauth.AuthorizationCode,
	redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) error {
	return f.redeem(ctx, known.ID(), redeem)
}

func (f *flawed) Grant(ctx context.Context, id string) (*oauth.AccessGrant, error) {
	return f.grant(ctx, id)
}

func (f *flawed) UpdateGrant(ctx context.Context, known *oauth.AccessGrant,
	change func(*oauth.AccessGrant) error) error {
	return f.update(ctx, known.ID(), change)
}

func (f *flawed) RecordUse(ctx context.Context, uses map[string]oauth.Use) error {
	return f.record(ctx, uses)
}

func (f *flawed) AuthorizationsOf(ctx context.Context, host oauth.Fingerprint) (oauth.Authorizations, error) {
	return f.list(ctx, host)
}

func (f *flawed) UpdateAuthorizationsOf(ctx context.Context, host oauth.Fingerprint,
	change func(oauth.Authorizations) error) error {
	return f.updateOf(ctx, host, change)
}

func (f *flawed) UseOnce(ctx context.Context, assertion oauth.Digest, forgetAfter time.Time) error {
	return f.use(ctx, assertion, forgetAfter)
}

func (f *flawed) DeleteExpired(ctx context.Context, now time.Time) (int, error) {
	return f.delete(ctx, now)
}

// put writes a grant without a transaction.
func (f *flawed) put(grant *oauth.AccessGrant) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.kept.put(grant)
}

// putCode writes a code without a transaction.
func (f *flawed) putCode(code *oauth.AuthorizationCode) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.kept.putCode(code)
}

// tamperGrant changes every grant that the store returns.
func tamperGrant(spoil func(*oauth.GrantSnapshot)) func(*flawed) {
	return func(f *flawed) {
		f.grant = func(ctx context.Context, id string) (*oauth.AccessGrant, error) {
			grant, err := f.memory.Grant(ctx, id)
			if err != nil {
				return nil, err
			}
			snapshot := grant.Snapshot()
			spoil(&snapshot)
			return oauth.RestoreGrant(snapshot), nil
		}
	}
}

// tamperCode changes every code that the store returns.
func tamperCode(spoil func(*oauth.CodeSnapshot)) func(*flawed) {
	return func(f *flawed) {
		f.code = func(ctx context.Context, id string) (*oauth.AuthorizationCode, error) {
			code, err := f.memory.Code(ctx, id)
			if err != nil {
				return nil, err
			}
			snapshot := code.Snapshot()
			spoil(&snapshot)
			return oauth.RestoreCode(snapshot), nil
		}
	}
}

func (f *flawed) redeemOutsideTransaction(ctx context.Context, id string,
	redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) error {
	code, err := f.memory.Code(ctx, id)
	if err != nil {
		return err
	}
	grant, err := redeem(code)
	if err != nil {
		return err
	}
	f.putCode(code)
	f.put(grant)
	return nil
}

func (f *flawed) updateOutsideTransaction(ctx context.Context, id string, change func(*oauth.AccessGrant) error) error {
	grant, err := f.memory.Grant(ctx, id)
	if err != nil {
		return err
	}
	if err := change(grant); err != nil {
		return err
	}
	f.put(grant)
	return nil
}

// updateGrantsOutsideTransaction starts again when a code has changed, but writes over the grants
// whatever they are.
func (f *flawed) updateGrantsOutsideTransaction(ctx context.Context, host oauth.Fingerprint,
	change func(oauth.Authorizations) error) error {
	found, err := f.memory.AuthorizationsOf(ctx, host)
	if err == nil {
		err = change(found)
	}
	if err != nil {
		return err
	}
	err = f.transaction(func(next contents) error {
		for _, code := range found.Codes {
			if next.codes[code.ID()].State != oauth.IssuedCode {
				return oauth.ErrUnavailable
			}
			next.putCode(code)
		}
		for _, grant := range found.Grants {
			next.grants[grant.ID()] = grant.Snapshot()
		}
		return nil
	})
	if err != nil {
		return f.updateGrantsOutsideTransaction(ctx, host, change)
	}
	return nil
}

func (f *flawed) updateNonZero(ctx context.Context, id string, change func(*oauth.AccessGrant) error) error {
	return f.memory.UpdateGrant(ctx, oauth.UnreadGrant(id), func(g *oauth.AccessGrant) error {
		before := g.Snapshot()
		if err := change(g); err != nil {
			return err
		}
		after := g.Snapshot()
		now, then := reflect.ValueOf(&after).Elem(), reflect.ValueOf(before)
		for i := range now.NumField() {
			if now.Field(i).IsZero() {
				now.Field(i).Set(then.Field(i))
			}
		}
		*g = *oauth.RestoreGrant(after)
		return nil
	})
}

// updateAgain runs a colliding closure again on the grant that its first run has changed.
func (f *flawed) updateAgain(ctx context.Context, id string, change func(*oauth.AccessGrant) error) error {
	grant, err := f.memory.Grant(ctx, id)
	if err != nil {
		return err
	}
	before := grant.Snapshot()
	if err := change(grant); err != nil {
		return err
	}
	return f.memory.transaction(func(next contents) error {
		if !reflect.DeepEqual(next.grants[id], before) {
			_ = change(grant)
		}
		next.put(grant)
		return nil
	})
}
