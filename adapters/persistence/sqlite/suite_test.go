package sqlite

import (
	"bufio"
	"context"
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

	"github.com/pasteport/pasteport/features/suite"
)

func TestSQLite(t *testing.T) {
	for variable, role := range map[string]func(file string){endVariable: endGrantsIn, lockVariable: lock} {
		if file := os.Getenv(variable); file != "" {
			role(file)
			os.Exit(0) // without the report of a suite that did not run
		}
	}
	suite.RunParallel(t, "SQLite")
}

// grant is the entry of these specs, a row of the table grants.
type grant struct {
	id    string
	ended bool
}

func (g *grant) GrantID() string { return g.id }

const tables = `CREATE TABLE IF NOT EXISTS grants (id TEXT NOT NULL PRIMARY KEY, ended INTEGER NOT NULL);
	CREATE TABLE IF NOT EXISTS counts (name TEXT NOT NULL PRIMARY KEY, taken INTEGER NOT NULL);
	CREATE TABLE IF NOT EXISTS holds (number INTEGER PRIMARY KEY)`

func openIn(directory string) *Database {
	GinkgoHelper()
	path := filepath.Join(directory, "oauth.db")
	// SQLite loses its locks on a file that is opened and closed here.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
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
	for _, id := range cache.grants.Keys() {
		entry, _ := cache.grants.Peek(id)
		Expect(find(d.Reader, id)).To(Equal(entry))
	}
}

func find(db *gorm.DB, id string) (CacheEntry, error) {
	found := &grant{id: id}
	err := db.Raw("SELECT ended FROM grants WHERE id = ?", id).Row().Scan(&found.ended)
	return found, err
}

func add(ctx context.Context, d *Database, id string) error {
	return d.Write(ctx, BusyTimeout, func(tx *Tx) error { return insert(tx, &grant{id: id}) })
}

func insert(tx *Tx, entry CacheEntry) error {
	tx.ChangedGrant(entry.GrantID(), entry)
	err := tx.Exec("INSERT INTO grants SELECT ?, FALSE", entry.GrantID()).Error
	if err == nil {
		tx.WroteRow()
	}
	return err
}

func lookup(ctx context.Context, d *Database, id string) (CacheEntry, error) {
	return d.Grants.Lookup(id, func() (CacheEntry, error) { return find(d.Reader.WithContext(ctx), id) })
}

func ended(ctx context.Context, d *Database, id string) bool {
	GinkgoHelper()
	entry, err := lookup(ctx, d, id)
	Expect(err).NotTo(HaveOccurred())
	return entry.(*grant).ended
}

func end(ctx context.Context, d *Database, id string) {
	GinkgoHelper()
	Expect(d.Write(ctx, BusyTimeout, func(tx *Tx) error {
		_, err := endIn(tx, id)
		return err
	})).To(Succeed())
}

// endIn reports whether the grant had not ended before.
func endIn(tx *Tx, id string) (ends bool, err error) {
	entry, cached := tx.Cached(id)
	if !cached {
		if entry, err = find(tx.DB, id); err != nil {
			return false, err
		}
	}
	found := entry.(*grant)
	if found.ended {
		return false, nil
	}
	tx.ChangedGrant(id, &grant{id, true})
	tx.WroteRow()
	return true, tx.Exec("UPDATE grants SET ended = TRUE WHERE id = ?", id).Error
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

// ending is another process, which ends the grant g at every line that it reads.
type ending struct {
	input  io.Writer
	output *bufio.Scanner
}

// endVariable makes this test binary an ending of the file that it names.
const endVariable = "SQLITE_END_GRANTS_IN"

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

func endGrantsIn(file string) {
	d, err := Open(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var ends bool
		err := d.Write(context.Background(), BusyTimeout, func(tx *Tx) (err error) {
			ends, err = endIn(tx, "g")
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
