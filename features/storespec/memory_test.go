package storespec

import (
	"cmp"
	"context"
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
	codes  map[string]oauth.CodeSnapshot // by id
	grants map[string]oauth.GrantSnapshot
	used   map[oauth.Digest]time.Time
}

func newMemory() *memory {
	return &memory{kept: contents{
		codes:  map[string]oauth.CodeSnapshot{},
		grants: map[string]oauth.GrantSnapshot{},
		used:   map[oauth.Digest]time.Time{},
	}}
}

// transaction applies work to a copy, which replaces the contents unless work returns an error.
func (m *memory) transaction(work func(next contents) error) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	next := contents{
		codes:  maps.Clone(m.kept.codes),
		grants: maps.Clone(m.kept.grants),
		used:   maps.Clone(m.kept.used),
	}
	if err := work(next); err != nil {
		return err
	}
	m.kept = next
	return nil
}

func (c contents) rows() int { return len(c.codes) + len(c.grants) + len(c.used) }

func (c contents) grant(id string) (*oauth.AccessGrant, error) {
	row, found := c.grants[id]
	if !found {
		return nil, oauth.ErrNotFound
	}
	return oauth.RestoreGrant(row), nil
}

func (c contents) code(id string) (*oauth.AuthorizationCode, error) {
	row, found := c.codes[id]
	if !found {
		return nil, oauth.ErrNotFound
	}
	return oauth.RestoreCode(row), nil
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
		if row.State == oauth.ActiveGrant && string(row.HostPrint) == string(host[:]) {
			all.Grants = append(all.Grants, oauth.RestoreGrant(row))
		}
	}
	return all
}

func (c contents) putCode(code *oauth.AuthorizationCode) { c.codes[code.ID()] = code.Snapshot() }

// put writes a grant, and keeps the last use that is stored.
func (c contents) put(grant *oauth.AccessGrant) {
	row := grant.Snapshot()
	if before, found := c.grants[row.ID]; found {
		row.LastUsedAt, row.LastUsedToken = before.LastUsedAt, before.LastUsedToken
	}
	c.grants[row.ID] = row
}

func (m *memory) AddCode(_ context.Context, code *oauth.AuthorizationCode,
	supersede func(*oauth.AuthorizationCode) error) error {
	return m.transaction(func(next contents) error {
		if earlier, found := next.codes[code.ID()]; found {
			if err := supersede(oauth.RestoreCode(earlier)); err != nil {
				return err
			}
		}
		next.putCode(code)
		return nil
	})
}

func (m *memory) Code(_ context.Context, id string) (*oauth.AuthorizationCode, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.kept.code(id)
}

func (m *memory) RedeemCode(_ context.Context, known *oauth.AuthorizationCode,
	redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) error {
	return m.transaction(func(next contents) error {
		code, err := next.code(known.ID())
		if err != nil {
			return err
		}
		grant, err := redeem(code)
		if err != nil {
			return err
		}
		next.putCode(code)
		next.put(grant)
		return nil
	})
}

func (m *memory) Grant(_ context.Context, id string) (*oauth.AccessGrant, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.kept.grant(id)
}

func (m *memory) UpdateGrant(_ context.Context, known *oauth.AccessGrant,
	change func(*oauth.AccessGrant) error) error {
	return m.transaction(func(next contents) error {
		grant, err := next.grant(known.ID())
		if err != nil {
			return err
		}
		if err := change(grant); err != nil {
			return err
		}
		next.put(grant)
		return nil
	})
}

func (m *memory) RecordUse(_ context.Context, uses map[string]oauth.Use) error {
	return m.transaction(func(next contents) error {
		for id, use := range uses {
			row, found := next.grants[id]
			if !found {
				continue
			}
			last := oauth.Use{At: row.LastUsedAt, Access: row.LastUsedToken}.Latest(use)
			row.LastUsedAt, row.LastUsedToken = last.At, last.Access
			next.grants[id] = row
		}
		return nil
	})
}

func (m *memory) AuthorizationsOf(_ context.Context, host oauth.Fingerprint) (oauth.Authorizations, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.kept.of(host), nil
}

func (m *memory) UpdateAuthorizationsOf(_ context.Context, host oauth.Fingerprint,
	change func(oauth.Authorizations) error) error {
	return m.transaction(func(next contents) error {
		found := next.of(host)
		if err := change(found); err != nil {
			return err
		}
		for _, code := range found.Codes {
			next.putCode(code)
		}
		for _, grant := range found.Grants {
			next.put(grant)
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
		before = next.rows()
		maps.DeleteFunc(next.grants, func(_ string, grant oauth.GrantSnapshot) bool {
			return !grant.ForgetAfter.After(now)
		})
		maps.DeleteFunc(next.codes, func(_ string, code oauth.CodeSnapshot) bool {
			return !code.ForgetAfter.After(now)
		})
		maps.DeleteFunc(next.used, func(_ oauth.Digest, forgetAfter time.Time) bool { return !forgetAfter.After(now) })
		after = next.rows()
		return nil
	})
	return before - after, err
}
