package sqlite

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

func TestSQLite(t *testing.T) {
	for variable, role := range map[string]func(file string){endVariable: endTokensIn, lockVariable: lock} {
		if file := os.Getenv(variable); file != "" {
			role(file)
			os.Exit(0) // without the report of a suite that did not run
		}
	}
	suite.RunParallel(t, "SQLite")
}

// token is the entry of these specs, a row of the table tokens.
type token struct {
	digest oauth.Digest
	grant  string
	ended  bool
}

func (t *token) Secret() oauth.Digest { return t.digest }

func (t *token) GrantID() string { return t.grant }

const tables = `CREATE TABLE IF NOT EXISTS tokens (digest BLOB NOT NULL PRIMARY KEY, grant_id TEXT NOT NULL, ended INTEGER NOT NULL);
	CREATE TABLE IF NOT EXISTS counts (name TEXT NOT NULL PRIMARY KEY, taken INTEGER NOT NULL);
	CREATE TABLE IF NOT EXISTS holds (number INTEGER PRIMARY KEY)`

func openIn(directory string) *Database {
	GinkgoHelper()
	path := filepath.Join(directory, "oauth.db")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600) // SQLite loses its locks on a file that is opened and closed here
	if !errors.Is(err, os.ErrExist) {
		Expect(err).NotTo(HaveOccurred())
		Expect(file.Close()).To(Succeed())
	}
	d, err := Open(path)
	Expect(err).NotTo(HaveOccurred())
	Expect(d.Writer.Exec(tables).Error).To(Succeed())
	DeferCleanup(func() {
		defer d.Close()
		expectTrueCache(d)
	})
	return d
}

// expectTrueCache compares the cache with the file, after anything that a spec has done.
func expectTrueCache(d *Database) {
	GinkgoHelper()
	cache := d.Grants
	now, err := cache.detector.currentVersion()
	if err != nil || now != cache.version { // then no entry is used
		return
	}
	byGrant := 0
	for _, entries := range cache.grants.Values() {
		byGrant += len(entries)
		for _, entry := range entries {
			Expect(cache.entries).To(HaveKeyWithValue(entry.Secret(), BeIdenticalTo(entry)))
		}
	}
	Expect(cache.entries).To(HaveLen(byGrant))
	for secret, entry := range cache.entries {
		Expect(find(d.Reader, secret)).To(Equal(entry))
	}
}

func digest(i int) (digest oauth.Digest) {
	binary.BigEndian.PutUint32(digest[:], uint32(i))
	return digest
}

func find(db *gorm.DB, secret oauth.Digest) (CacheEntry, error) {
	found := &token{digest: secret}
	err := db.Raw("SELECT grant_id, ended FROM tokens WHERE digest = ?", secret[:]).Row().Scan(&found.grant, &found.ended)
	return found, err
}

// add writes tokens of one grant; their digests are digest(0), digest(1) and so on.
func add(ctx context.Context, d *Database, grant string, tokens int) error {
	return d.Write(ctx, BusyTimeout, func(tx *Tx) error {
		var current []CacheEntry
		for i := range tokens {
			current = append(current, &token{digest: digest(i), grant: grant})
		}
		return insert(tx, grant, current...)
	})
}

func insert(tx *Tx, grant string, entries ...CacheEntry) error {
	tx.ChangedGrant(grant, entries)
	for _, entry := range entries {
		secret := entry.Secret()
		if err := tx.Exec("INSERT INTO tokens SELECT ?, ?, FALSE", secret[:], grant).Error; err != nil {
			return err
		}
		tx.WroteRow()
	}
	return nil
}

func lookup(ctx context.Context, d *Database, secret oauth.Digest) (CacheEntry, error) {
	return d.Grants.Lookup(secret, func() (CacheEntry, error) { return find(d.Reader.WithContext(ctx), secret) })
}

func ended(ctx context.Context, d *Database, secret oauth.Digest) bool {
	GinkgoHelper()
	entry, err := lookup(ctx, d, secret)
	Expect(err).NotTo(HaveOccurred())
	return entry.(*token).ended
}

func end(ctx context.Context, d *Database, secret oauth.Digest) {
	GinkgoHelper()
	Expect(d.Write(ctx, BusyTimeout, func(tx *Tx) error {
		_, err := endIn(tx, secret)
		return err
	})).To(Succeed())
}

// endIn reports whether the token had not ended before.
func endIn(tx *Tx, secret oauth.Digest) (ends bool, err error) {
	entry, cached := tx.Cached(secret)
	if !cached {
		if entry, err = find(tx.DB, secret); err != nil {
			return false, err
		}
	}
	found := entry.(*token)
	if found.ended {
		return false, nil
	}
	tx.ChangedGrant(found.grant, []CacheEntry{&token{found.digest, found.grant, true}})
	tx.WroteRow()
	return true, tx.Exec("UPDATE tokens SET ended = TRUE WHERE grant_id = ?", found.grant).Error
}

// holding is a write that lasts.
type holding struct {
	release func()
	done    chan struct{}
}

func (h *holding) wait() { <-h.done }

// hold writes without the context of the spec, which ends before.
func hold(ctx context.Context, d *Database) *holding {
	GinkgoHelper()
	begun, goOn := make(chan struct{}), make(chan struct{})
	h := &holding{sync.OnceFunc(func() { close(goOn) }), make(chan struct{})}
	go func() {
		defer GinkgoRecover()
		defer close(h.done)
		Expect(d.Write(context.WithoutCancel(ctx), BusyTimeout, func(tx *Tx) error {
			close(begun)
			<-goOn
			tx.WroteRow()
			return tx.Exec("INSERT INTO holds DEFAULT VALUES").Error
		})).To(Succeed())
	}()
	DeferCleanup(func() { h.release(); h.wait() })
	Eventually(begun).WithContext(ctx).WithTimeout(BusyTimeout).Should(BeClosed())
	return h
}

// ending is another process, which ends the first token at every line that it reads.
type ending struct {
	input  io.Writer
	output *bufio.Scanner
}

// endVariable makes this test binary an ending of the file that it names.
const endVariable = "SQLITE_END_TOKENS_IN"

func newEnding(file string) *ending {
	GinkgoHelper()
	process := exec.Command(os.Args[0], "-test.run=^TestSQLite$") // ends with its input
	process.Env = append(os.Environ(), endVariable+"="+file)
	input, err := process.StdinPipe()
	Expect(err).NotTo(HaveOccurred())
	output, err := process.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(process.Start()).To(Succeed())
	DeferCleanup(func() {
		Expect(input.Close()).To(Succeed())
		Expect(process.Wait()).To(Succeed())
	})
	return &ending{input, bufio.NewScanner(output)}
}

func (e *ending) end() {
	GinkgoHelper()
	Expect(fmt.Fprintln(e.input)).To(Equal(1))
	Expect(e.output.Scan()).To(BeTrue())
	Expect(e.output.Text()).To(Equal("ended: true <nil>"))
}

func endTokensIn(file string) {
	d, err := Open(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var ends bool
		err := d.Write(context.Background(), BusyTimeout, func(tx *Tx) (err error) {
			ends, err = endIn(tx, digest(0))
			return err
		})
		fmt.Println("ended:", ends, err)
	}
	_ = d.Close()
}

// lockVariable makes this test binary try to write to the file that it names, without waiting.
const lockVariable = "SQLITE_LOCK"

func lock(file string) {
	opened, err := connector{}.Driver().Open("file:" + url.PathEscape(file) + "?mode=rw&_pragma=busy_timeout(0)")
	if err == nil {
		_, err = opened.(session).ExecContext(context.Background(), "BEGIN IMMEDIATE", nil)
	}
	fmt.Println(err)
}
