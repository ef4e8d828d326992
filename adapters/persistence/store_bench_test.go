package persistence

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
)

const writersAtOnce = 64

func benchStore(b *testing.B) *Store {
	b.Helper()
	store, err := OpenSQLite(filepath.Join(b.TempDir(), "oauth.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	b.ReportAllocs()
	return store
}

func activeGrant() *oauth.AccessGrant {
	id, now := strings.ToLower(rand.Text()), time.Now()
	return oauth.RestoreGrant(oauth.GrantSnapshot{
		ConsentSnapshot: oauth.ConsentSnapshot{
			ID:        id,
			ClientID:  "https://client.example/client.json",
			Resource:  "https://cms.example/mcp",
			Scopes:    "mcp",
			State:     "active",
			CreatedAt: now,
		},
		IdleEnd:      now.Add(time.Hour),
		AbsoluteEnd:  now.Add(time.Hour),
		AccessTokens: []oauth.AccessToken{{Number: 1, ExpiresAt: now.Add(time.Hour)}},
	})
}

// BenchmarkGroupCommit lets grants be kept by the group and by a transaction for each in turns, on
// one file, because a disk is faster in one second and slower in the next.
func BenchmarkGroupCommit(b *testing.B) {
	for _, writers := range []int{1, writersAtOnce} {
		b.Run(strconv.Itoa(writers), func(b *testing.B) {
			store := benchStore(b)
			var shared, alone time.Duration
			grants := 0
			for b.Loop() {
				shared += byAll(writers, func() { addOne(b, store) })
				alone += byAll(writers, func() { addUngrouped(b, store) })
				grants += writers * inOneTurn
			}
			b.ReportMetric(float64(shared)/float64(grants), "shared-ns/grant")
			b.ReportMetric(float64(alone)/float64(grants), "alone-ns/grant")
		})
	}
}

const inOneTurn = 48 // grants of each writer, so that it hardly matters that a turn begins and ends with few

func byAll(writers int, add func()) time.Duration {
	began, all := time.Now(), sync.WaitGroup{}
	for range writers {
		all.Go(func() {
			for range inOneTurn {
				add()
			}
		})
	}
	all.Wait()
	return time.Since(began)
}

func addOne(b *testing.B, store *Store) {
	b.Helper()
	if err := keep(context.Background(), store, activeGrant()); err != nil {
		b.Error(err)
	}
}

func addUngrouped(b *testing.B, store *Store) {
	b.Helper()
	grant := activeGrant()
	if err := store.writer.Transaction(func(tx *gorm.DB) error {
		return grants.write(tx, nil, []oauth.GrantSnapshot{grant.Snapshot()})
	}); err != nil {
		b.Error(err)
	}
}
