package storespec

import (
	"context"
	"maps"
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

func (c contents) find(of oauth.Selection) (all oauth.Authorizations) {
	for _, row := range c.codes {
		if of.HasCode(row) {
			all.Codes = append(all.Codes, oauth.RestoreCode(row))
		}
	}
	for _, row := range c.grants {
		if of.HasGrant(row) {
			all.Grants = append(all.Grants, oauth.RestoreGrant(row))
		}
	}
	return all
}

func (c contents) put(all oauth.Authorizations) {
	for _, code := range all.Codes {
		c.codes[code.ID()] = code.Snapshot()
	}
	for _, grant := range all.Grants {
		row := grant.Snapshot()
		if before, found := c.grants[row.ID]; found { // only RecordUse writes the last use
			row.LastUsedAt, row.LastUsedToken = before.LastUsedAt, before.LastUsedToken
		}
		c.grants[row.ID] = row
	}
}

func (m *memory) Find(_ context.Context, of oauth.Selection) (oauth.Authorizations, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.kept.find(of), nil
}

func (m *memory) Change(_ context.Context, of oauth.Selection, change func(*oauth.Authorizations) error) error {
	return m.transaction(func(next contents) error {
		all := next.find(of)
		if err := change(&all); err != nil {
			return err
		}
		next.put(all)
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
