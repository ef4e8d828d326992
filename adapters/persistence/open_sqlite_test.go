package persistence

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Opening a store in a SQLite file", func() {
	var directory string
	BeforeEach(func() { directory = GinkgoT().TempDir() })

	It("makes files that only their owner reads, in a directory of the same kind", Label("H7"), func() {
		directory = filepath.Join(directory, "made", "on the way?#%20")
		openIn(directory)
		Expect(mode(directory)).To(Equal(fs.FileMode(0o700)))
		for _, name := range []string{"oauth.db", "oauth.db-wal", "oauth.db-shm", "oauth.db.secret"} {
			Expect(mode(filepath.Join(directory, name))).To(Equal(fs.FileMode(0o600)), name)
		}
	})

	It("keeps what a statement may put back in memory, once the schema is there", Label("I22"), func() {
		var place int
		Expect(openIn(directory).writer.Raw("PRAGMA temp_store").Scan(&place).Error).To(Succeed())
		Expect(place).To(Equal(2))
	})

	It("is refused when it is a directory, or its directory is a file", func() {
		Expect(OpenSQLite(directory)).Error().To(MatchError(ContainSubstring("it is a directory: name a file in it")))
		write("")(filepath.Join(directory, "file"))
		Expect(OpenSQLite(filepath.Join(directory, "file", "oauth.db"))).Error().
			To(MatchError(ContainSubstring("not a directory")))
	})
})

var _ = Describe("Opening a SQLite file beside its service", Label("H7"), func() {
	var directory, file string
	BeforeEach(func() {
		directory = GinkgoT().TempDir()
		file = filepath.Join(directory, "oauth.db")
	})

	DescribeTable("changes nothing and refuses it", func(prepare func(file string), reason string) {
		prepare(file)
		before, _ := os.ReadFile(file)
		_, err := OpenExisting(file, ServerOptions{})
		Expect(err).To(MatchError(And(ContainSubstring("opening the OAuth database "+file), ContainSubstring(reason))))
		after, _ := os.ReadFile(file)
		Expect(after).To(Equal(before))
		Expect(file + ".secret").NotTo(BeAnExistingFile())
	},
		Entry("when it is not there", func(string) {}, "no such file"),
		Entry("when it is empty", write(""), "not a database of Pasteport"),
		Entry("when it is somebody else's", func(file string) {
			write("")(file)
			database, err := sqlite.Open(file)
			Expect(err).NotTo(HaveOccurred())
			Expect(database.Writer.Exec("CREATE TABLE theirs (x)").Error).To(Succeed())
			Expect(database.Close()).To(Succeed())
		}, "not a database of Pasteport"),
		Entry("when a newer version has written it", func(file string) {
			fromTheFuture(file)
			Expect(os.Remove(file + ".secret")).To(Succeed())
		}, "another version of Pasteport has written it"),
	)
})

var _ = Describe("Opening files that others could read", Label("H7"), func() {
	It("closes them to everybody but their owner, with what SQLite puts beside them", func(ctx SpecContext) {
		directory := GinkgoT().TempDir()
		Expect(openIn(directory).Close()).To(Succeed())
		for _, name := range []string{"oauth.db", "oauth.db.secret"} {
			Expect(os.Chmod(filepath.Join(directory, name), 0o644)).To(Succeed())
		}
		Expect(keep(ctx, openIn(directory), aGrant("g"))).To(Succeed())
		for _, name := range []string{"oauth.db", "oauth.db.secret", "oauth.db-wal", "oauth.db-shm"} {
			found, err := os.Stat(filepath.Join(directory, name))
			Expect(err).NotTo(HaveOccurred())
			Expect(found.Mode().Perm()).To(BeEquivalentTo(0o600), name)
		}
	})
})

var _ = Describe("Migrating a SQLite file", Label("H7"), func() {
	It("refuses a file of another version, and changes nothing", func() {
		file := filepath.Join(GinkgoT().TempDir(), "oauth.db")
		Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
		database, err := sqlite.Open(file, sqlite.WAL)
		Expect(err).NotTo(HaveOccurred())
		Expect(database.Writer.Exec("CREATE TABLE schema_migrations (id TEXT PRIMARY KEY)").Error).To(Succeed())
		Expect(database.Writer.Exec("INSERT INTO schema_migrations VALUES ('0001_codes')").Error).To(Succeed())
		Expect(database.Close()).To(Succeed())
		before, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		for _, open := range []func() error{
			func() error { _, err := OpenSQLite(file); return err },
			func() error { _, err := OpenExisting(file, ServerOptions{}); return err },
		} {
			Expect(open()).To(MatchError(ContainSubstring("use that version, or name a new data folder or database")))
		}
		Expect(os.ReadFile(file)).To(Equal(before))
	})

	It("never changes a migration: another schema has another id", func() {
		digests := map[string]string{}
		for _, migration := range migrations {
			text := strings.Join(strings.Fields(strings.Join(migration.statements, ";")), " ")
			digests[migration.id] = fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16]
		}
		Expect(digests).To(Equal(map[string]string{
			"0001_codes_grants_and_attempts": "b672b22d01928431",
		}))
	})
})

var _ = Describe("The server secret", Label("J2"), func() {
	var directory string
	BeforeEach(func() { directory = GinkgoT().TempDir() })

	It("is 32 random bytes that stay", func() {
		store := openIn(directory)
		secrets, err := store.Secrets()
		Expect(err).NotTo(HaveOccurred())
		Expect(secrets).To(ConsistOf(HaveLen(32)))
		Expect(reopen(store).(*Store).Secrets()).To(Equal(secrets))
		Expect(openIn(GinkgoT().TempDir()).Secrets()).NotTo(Equal(secrets))
	})

	It("is refused when it is cut short or missing", func() {
		store := openIn(directory)
		write("short")(store.secretFile)
		_, err := store.KeptSecrets()
		Expect(err).To(And(MatchError(ContainSubstring("is not one secret of 32 bytes")),
			MatchError(oauth.ErrUnavailable)))
		Expect(os.Remove(store.secretFile)).To(Succeed())
		_, err = store.KeptSecrets()
		Expect(errors.Is(err, fs.ErrNotExist)).To(BeTrue())
	})
})

func mode(path string) fs.FileMode {
	found, err := os.Stat(path)
	Expect(err).NotTo(HaveOccurred())
	return found.Mode().Perm()
}

func write(content string) func(file string) {
	return func(file string) { Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed()) }
}

func fromTheFuture(file string) {
	store := openIn(filepath.Dir(file))
	Expect(store.writer.Exec("INSERT INTO schema_migrations (id) VALUES ('9999_more')").Error).To(Succeed())
	Expect(store.Close()).To(Succeed())
}

var _ = Describe("Replacing the server secret of a store", Label("J2"), func() {
	var directory string
	var store *Store
	day := func(n int) time.Time { return then.Add(time.Duration(n) * 24 * time.Hour) }
	secrets := func() [][]byte {
		GinkgoHelper()
		all, err := store.Secrets()
		Expect(err).NotTo(HaveOccurred())
		return all
	}
	BeforeEach(func() {
		directory = GinkgoT().TempDir()
		store = openIn(directory)
	})

	It("is looked for at each use, because another process may have sealed with the new one already",
		Label("I22", "J6"), func(ctx SpecContext) {
			other := openIn(directory)
			for n := range 50 {
				before := secrets()[0]
				Expect(other.ReplaceSecret(ctx, day(n), day(n-2))).To(Succeed())
				Expect(secrets()[0]).NotTo(Equal(before))
				Expect(secrets()[1]).To(Equal(before))
			}
		})

	It("is found soon when it was laid there by hand", func() {
		secrets()
		lain := bytes.Repeat([]byte{7}, 32)
		Expect(os.WriteFile(store.secretFile+".lain", lain, 0o600)).To(Succeed())
		Expect(os.Rename(store.secretFile+".lain", store.secretFile)).To(Succeed())
		Eventually(secrets).Should(Equal([][]byte{lain}))
	})

	It("loses none when several do it at once while others read", Label("I22"), func(ctx SpecContext) {
		first := secrets()[0]
		var racing sync.WaitGroup
		for range 4 {
			mine := openIn(directory)
			racing.Go(func() {
				defer GinkgoRecover()
				for range 5 {
					Expect(mine.ReplaceSecret(ctx, day(1), time.Time{})).To(Succeed())
					all, err := mine.Secrets()
					Expect(err).NotTo(HaveOccurred())
					Expect(bytes.Equal(all[len(all)-1], first)).To(BeTrue())
				}
			})
		}
		racing.Wait()
		Expect(secrets()).To(HaveLen(21))
	})
})

var _ = Describe("SCHEMA.md", func() {
	var page string
	var store *Store
	BeforeEach(func() {
		content, err := os.ReadFile("SCHEMA.md")
		Expect(err).NotTo(HaveOccurred())
		page, store = string(content), openIn(GinkgoT().TempDir())
	})

	It("describes every column of every table", func() {
		var columns []string
		Expect(store.reader.Raw(
			`SELECT t.name || '.' || lower(c.name) || ' ' || upper(c.type)
			FROM sqlite_schema t, pragma_table_info(t.name) c
			WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'`).Scan(&columns).Error).To(Succeed())
		Expect(described(page)).To(ConsistOf(columns))
	})

	It("justifies every index", func() {
		var indexes []string
		Expect(store.reader.Raw(
			`SELECT name || ' ' || tbl_name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL`).
			Scan(&indexes).Error).To(Succeed())
		var justified []string
		for _, line := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| `[\\w`, ]+` \\|").
			FindAllStringSubmatch(page, -1) {
			table, _, _ := strings.Cut(line[1], "_by_")
			justified = append(justified, line[1]+" "+table)
		}
		Expect(justified).To(ConsistOf(indexes))
	})
})

// described lists the columns of the page as "table.column TYPE".
func described(page string) (columns []string) {
	for _, section := range strings.Split(page, "\n## ")[1:] {
		table, isTable := strings.CutPrefix(strings.SplitN(section, "\n", 2)[0], "Table ")
		if !isTable {
			continue
		}
		for _, line := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\|").FindAllStringSubmatch(section, -1) {
			columns = append(columns, strings.Trim(table, "`")+"."+line[1]+" "+line[2])
		}
	}
	return columns
}
