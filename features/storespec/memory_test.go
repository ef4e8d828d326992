package storespec

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// memory is a correct store in memory. Each flawed store of these specs breaks one promise of it.
type memory struct {
	mutex sync.Mutex
	kept  contents
}

type contents struct {
	codes   map[string]oauth.CodeSnapshot // by id
	grants  map[string]oauth.GrantSnapshot
	secrets map[string]oauth.SecretSnapshot // by digest
	used    map[oauth.Digest]time.Time
	counted map[oauth.Digest]oauth.WindowCount
}

func newMemory() *memory {
	return &memory{kept: contents{map[string]oauth.CodeSnapshot{}, map[string]oauth.GrantSnapshot{}, map[string]oauth.SecretSnapshot{}, map[oauth.Digest]time.Time{}, map[oauth.Digest]oauth.WindowCount{}}}
}

// transaction applies work to a copy, which replaces the contents unless work returns an error.
func (m *memory) transaction(work func(next contents) error) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	next := contents{maps.Clone(m.kept.codes), maps.Clone(m.kept.grants), maps.Clone(m.kept.secrets), maps.Clone(m.kept.used), maps.Clone(m.kept.counted)}
	if err := work(next); err != nil {
		return err
	}
	m.kept = next
	return nil
}

func (c contents) find(secret oauth.Digest) (*oauth.AccessGrant, error) {
	held, found := c.secrets[string(secret[:])]
	if !found {
		return nil, oauth.ErrNotFound
	}
	return oauth.RestoreGrant(c.grants[held.Grant], held), nil
}

func (c contents) findCode(code oauth.Digest) (*oauth.AuthorizationCode, error) {
	for _, row := range c.codes {
		if string(row.Digest) == string(code[:]) {
			return oauth.RestoreCode(row), nil
		}
	}
	return nil, oauth.ErrNotFound
}

func (c contents) of(host oauth.Fingerprint) (all oauth.Authorizations) {
	for _, row := range slices.SortedFunc(maps.Values(c.codes), func(a, b oauth.CodeSnapshot) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	}) {
		if row.State == "issued" && string(row.HostPrint) == string(host[:]) {
			all.Codes = append(all.Codes, oauth.RestoreCode(row))
		}
	}
	for _, row := range slices.SortedFunc(maps.Values(c.grants), func(a, b oauth.GrantSnapshot) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	}) {
		if string(row.HostPrint) == string(host[:]) {
			all.Grants = append(all.Grants, oauth.RestoreGrant(row))
		}
	}
	return all
}

func (c contents) putCode(code *oauth.AuthorizationCode) error {
	row := code.Snapshot()
	for id, other := range c.codes {
		if id != row.ID && string(other.Digest) == string(row.Digest) {
			return oauth.ErrDuplicate
		}
	}
	c.codes[row.ID] = row
	return nil
}

// put writes a grant and its secrets; known is the digest by which the grant was found.
func (c contents) put(grant *oauth.AccessGrant, known string) error {
	row, secrets := grant.Snapshot()
	for _, secret := range secrets {
		digest := string(secret.Digest)
		if _, taken := c.secrets[digest]; taken && digest != known {
			return oauth.ErrDuplicate
		}
		c.secrets[digest] = secret
	}
	c.grants[row.ID] = row
	if row.HostBox == nil {
		c.emptyWraps(row.ID)
	}
	return nil
}

func (c contents) emptyWraps(grant string) {
	for digest, secret := range c.secrets {
		if secret.Grant == grant {
			secret.HostWrap = nil
			c.secrets[digest] = secret
		}
	}
}

func (c contents) remove(grant string) {
	delete(c.grants, grant)
	maps.DeleteFunc(c.secrets, func(_ string, secret oauth.SecretSnapshot) bool { return secret.Grant == grant })
}

func (m *memory) AddCode(_ context.Context, code *oauth.AuthorizationCode, supersede func(*oauth.AuthorizationCode) error) error {
	return m.transaction(func(next contents) error {
		if earlier, found := next.codes[code.ID()]; found {
			if err := supersede(oauth.RestoreCode(earlier)); err != nil {
				return err
			}
		}
		return next.putCode(code)
	})
}

func (m *memory) Code(_ context.Context, code oauth.Digest) (*oauth.AuthorizationCode, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.kept.findCode(code)
}

func (m *memory) RedeemCode(_ context.Context, value oauth.Digest, redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) error {
	return m.transaction(func(next contents) error {
		code, err := next.findCode(value)
		if err != nil {
			return err
		}
		grant, err := redeem(code)
		if err != nil {
			return err
		}
		return errors.Join(next.putCode(code), next.put(grant, ""))
	})
}

func (m *memory) Grant(_ context.Context, secret oauth.Digest) (*oauth.AccessGrant, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.kept.find(secret)
}

func (m *memory) UpdateGrant(_ context.Context, secret oauth.Digest, change func(*oauth.AccessGrant) error) error {
	return m.transaction(func(next contents) error {
		grant, err := next.find(secret)
		if err != nil {
			return err
		}
		if err := change(grant); err != nil {
			return err
		}
		return next.put(grant, string(secret[:]))
	})
}

func (m *memory) AuthorizationsOf(_ context.Context, host oauth.Fingerprint) (oauth.Authorizations, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.kept.of(host), nil
}

func (m *memory) UpdateAuthorizationsOf(_ context.Context, host oauth.Fingerprint, change func(oauth.Authorizations) error) error {
	return m.transaction(func(next contents) error {
		found := next.of(host)
		if err := change(found); err != nil {
			return err
		}
		for _, code := range found.Codes {
			if err := next.putCode(code); err != nil {
				return err
			}
		}
		for _, grant := range found.Grants {
			if err := next.put(grant, ""); err != nil {
				return err
			}
		}
		return nil
	})
}

func (m *memory) UseOnce(_ context.Context, assertion oauth.Digest, forgetAfter time.Time) error {
	return m.transaction(func(next contents) error {
		if _, used := next.used[assertion]; used {
			return oauth.ErrDuplicate
		}
		next.used[assertion] = forgetAfter
		return nil
	})
}

func (m *memory) DeleteExpired(_ context.Context, now time.Time) (int, error) {
	before, after := 0, 0
	err := m.transaction(func(next contents) error {
		before = len(next.codes) + len(next.grants) + len(next.secrets) + len(next.used) + len(next.counted)
		for id, grant := range next.grants {
			if !grant.ForgetAfter.After(now) {
				next.remove(id)
			} else if !grant.GraceEnd.After(now) {
				grant.SuccessorBox = nil
				next.grants[id] = grant
			}
		}
		maps.DeleteFunc(next.codes, func(_ string, code oauth.CodeSnapshot) bool { return !code.ForgetAfter.After(now) })
		maps.DeleteFunc(next.secrets, func(_ string, secret oauth.SecretSnapshot) bool {
			return !secret.ForgetAfter.IsZero() && !secret.ForgetAfter.After(now)
		})
		maps.DeleteFunc(next.used, func(_ oauth.Digest, forgetAfter time.Time) bool { return !forgetAfter.After(now) })
		maps.DeleteFunc(next.counted, func(_ oauth.Digest, c oauth.WindowCount) bool { return !c.Ends.After(now) })
		after = len(next.codes) + len(next.grants) + len(next.secrets) + len(next.used) + len(next.counted)
		return nil
	})
	return before - after, err
}
