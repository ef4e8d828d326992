package persistence

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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

	It("writes the log back when it is closed", func() {
		Expect(openIn(directory).Close()).To(Succeed())
		Expect(filepath.Join(directory, "oauth.db-wal")).NotTo(BeAnExistingFile())
	})

	It("keeps what a statement may put back in memory, once the schema is there", Label("I22"), func() {
		var place int
		Expect(openIn(directory).writer.Raw("PRAGMA temp_store").Scan(&place).Error).To(Succeed())
		Expect(place).To(Equal(2))
	})

	DescribeTable("is refused", func(prepare func(file string), reason string) {
		file := filepath.Join(directory, "oauth.db")
		prepare(file)
		_, err := OpenSQLite(file)
		Expect(err).To(MatchError(And(ContainSubstring("opening the OAuth database "+file), ContainSubstring(reason))))
	},
		Entry("when it is a directory", func(file string) {
			Expect(os.Mkdir(file, 0o700)).To(Succeed())
		}, "it is a directory: name a file in it"),
		Entry("when it is something else", write("this is not a database, whatever its name may say"),
			"it is not a SQLite database or it is damaged"),
		Entry("when its schema is damaged", damageSchema, "it is not a SQLite database or it is damaged"),
		Entry("when a newer version has written it", fromTheFuture, "another version of Pasteport has written it"),
	)

	It("is refused when its directory is a file", func() {
		write("")(filepath.Join(directory, "file"))
		_, err := OpenSQLite(filepath.Join(directory, "file", "oauth.db"))
		Expect(err).To(MatchError(ContainSubstring("not a directory")))
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

	It("is in no file of the database", Label("H3"), func() {
		secrets, err := openIn(directory).Secrets()
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"oauth.db", "oauth.db-wal", "oauth.db-shm"} {
			content, err := os.ReadFile(filepath.Join(directory, name))
			Expect(err).NotTo(HaveOccurred())
			Expect(string(content)).NotTo(ContainSubstring(string(secrets[0])))
		}
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

func damageSchema(file string) {
	Expect(openIn(filepath.Dir(file)).Close()).To(Succeed())
	content, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	write(strings.Replace(string(content), "CREATE TABLE grants", "CREATE TABXX grants", -1))(file)
}

func fromTheFuture(file string) {
	store := openIn(filepath.Dir(file))
	Expect(store.writer.Exec("INSERT INTO schema_migrations (id) VALUES ('9999_more')").Error).To(Succeed())
	Expect(store.Close()).To(Succeed())
}
