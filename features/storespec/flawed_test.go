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
	add      func(ctx context.Context, code *oauth.AuthorizationCode, supersede func(*oauth.AuthorizationCode) error) error
	code     func(ctx context.Context, value oauth.Digest) (*oauth.AuthorizationCode, error)
	redeem   func(ctx context.Context, value oauth.Digest, redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) error
	grant    func(ctx context.Context, secret oauth.Digest) (*oauth.AccessGrant, error)
	update   func(ctx context.Context, secret oauth.Digest, change func(*oauth.AccessGrant) error) error
	list     func(ctx context.Context, host oauth.Fingerprint) (oauth.Authorizations, error)
	updateOf func(ctx context.Context, host oauth.Fingerprint, change func(oauth.Authorizations) error) error
	use      func(ctx context.Context, assertion oauth.Digest, forgetAfter time.Time) error
	delete   func(ctx context.Context, now time.Time) (int, error)
	ended    func(ctx context.Context, since time.Time) (oauth.Ended, error)
	counts   func(ctx context.Context, now time.Time, windows ...oauth.Window) ([]oauth.WindowCount, error)
	count    func(ctx context.Context, now time.Time, windows ...oauth.Window) error
}

func (f *flawed) AddCode(ctx context.Context, code *oauth.AuthorizationCode, supersede func(*oauth.AuthorizationCode) error) error {
	return f.add(ctx, code, supersede)
}

func (f *flawed) Code(ctx context.Context, value oauth.Digest) (*oauth.AuthorizationCode, error) {
	return f.code(ctx, value)
}

func (f *flawed) RedeemCode(ctx context.Context, value oauth.Digest, redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) error {
	return f.redeem(ctx, value, redeem)
}

func (f *flawed) Grant(ctx context.Context, secret oauth.Digest) (*oauth.AccessGrant, error) {
	return f.grant(ctx, secret)
}

func (f *flawed) UpdateGrant(ctx context.Context, secret oauth.Digest, change func(*oauth.AccessGrant) error) error {
	return f.update(ctx, secret, change)
}

func (f *flawed) AuthorizationsOf(ctx context.Context, host oauth.Fingerprint) (oauth.Authorizations, error) {
	return f.list(ctx, host)
}

func (f *flawed) UpdateAuthorizationsOf(ctx context.Context, host oauth.Fingerprint, change func(oauth.Authorizations) error) error {
	return f.updateOf(ctx, host, change)
}

func (f *flawed) UseOnce(ctx context.Context, assertion oauth.Digest, forgetAfter time.Time) error {
	return f.use(ctx, assertion, forgetAfter)
}

func (f *flawed) DeleteExpired(ctx context.Context, now time.Time) (int, error) {
	return f.delete(ctx, now)
}

// put writes a grant without a transaction, except for secrets that another grant has.
func (f *flawed) put(grant *oauth.AccessGrant) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	row, secrets := grant.Snapshot()
	f.kept.grants[row.ID] = row
	for _, secret := range secrets {
		if taken, found := f.kept.secrets[string(secret.Digest)]; !found || taken.Grant == row.ID {
			f.kept.secrets[string(secret.Digest)] = secret
		}
	}
}

// putCode writes a code without a transaction, even if another code has its digest.
func (f *flawed) putCode(code *oauth.AuthorizationCode) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.kept.codes[code.ID()] = code.Snapshot()
}

// free deletes the stored secrets that have the digests of this grant's secrets.
func (f *flawed) free(grant *oauth.AccessGrant) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	_, secrets := grant.Snapshot()
	for _, secret := range secrets {
		delete(f.kept.secrets, string(secret.Digest))
	}
}

func (f *flawed) restore(secrets map[string]oauth.SecretSnapshot) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for digest, secret := range secrets {
		f.kept.secrets[digest] = secret
	}
}

// tamperGrant changes every grant that the store returns.
func tamperGrant(spoil func(*oauth.GrantSnapshot, []oauth.SecretSnapshot)) func(*flawed) {
	return func(f *flawed) {
		f.grant = func(ctx context.Context, secret oauth.Digest) (*oauth.AccessGrant, error) {
			grant, err := f.memory.Grant(ctx, secret)
			if err != nil {
				return nil, err
			}
			snapshot, secrets := grant.Snapshot()
			spoil(&snapshot, secrets)
			return oauth.RestoreGrant(snapshot, secrets...), nil
		}
	}
}

// tamperCode changes every code that the store returns.
func tamperCode(spoil func(*oauth.CodeSnapshot)) func(*flawed) {
	return func(f *flawed) {
		f.code = func(ctx context.Context, value oauth.Digest) (*oauth.AuthorizationCode, error) {
			code, err := f.memory.Code(ctx, value)
			if err != nil {
				return nil, err
			}
			snapshot := code.Snapshot()
			spoil(&snapshot)
			return oauth.RestoreCode(snapshot), nil
		}
	}
}

func (f *flawed) redeemOutsideTransaction(ctx context.Context, value oauth.Digest, redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) error {
	code, err := f.memory.Code(ctx, value)
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

func (f *flawed) updateOutsideTransaction(ctx context.Context, secret oauth.Digest, change func(*oauth.AccessGrant) error) error {
	grant, err := f.memory.Grant(ctx, secret)
	if err != nil {
		return err
	}
	if err := change(grant); err != nil {
		return err
	}
	f.put(grant)
	return nil
}

func (f *flawed) updateNonZero(ctx context.Context, secret oauth.Digest, change func(*oauth.AccessGrant) error) error {
	return f.memory.UpdateGrant(ctx, secret, func(g *oauth.AccessGrant) error {
		before, _ := g.Snapshot()
		if err := change(g); err != nil {
			return err
		}
		after, secrets := g.Snapshot()
		now, then := reflect.ValueOf(&after).Elem(), reflect.ValueOf(before)
		for i := range now.NumField() {
			if now.Field(i).IsZero() {
				now.Field(i).Set(then.Field(i))
			}
		}
		*g = *oauth.RestoreGrant(after, secrets...)
		return nil
	})
}
