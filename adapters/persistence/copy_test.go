package persistence

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
)

// openNew are empty stores by the engine that keeps them.
var openNew = map[string]func(context.Context) *Store{
	"SQLite":     func(context.Context) *Store { return openFresh() },
	"PostgreSQL": func(ctx context.Context) *Store { return engineServers["PostgreSQL"].place(ctx).open() },
	"MariaDB":    func(ctx context.Context) *Store { return engineServers["MariaDB"].place(ctx).open() },
}

// fill makes more rows than two batches have, some of every kind and with everything that engines
// keep in ways of their own.
func fill(ctx context.Context, store *Store) {
	GinkgoHelper()
	var active []oauth.GrantSnapshot
	var issued []oauth.CodeSnapshot
	for i := range 450 {
		id := fmt.Sprintf("%032x", i)
		active = append(active, aGrant(id).Snapshot())
		issued = append(issued, aCode(id).Snapshot())
	}
	active[4].AccessTokens = []oauth.AccessToken{{
		Number:    1,
		Digest:    digest(1),
		ExpiresAt: then,
		Scopes:    "mcp",
		Wrap:      []byte("wrap"),
	}}
	active[4].Rotations = []oauth.Rotation{{
		Number:     1,
		Digest:     digest(2),
		Access:     1,
		Box:        []byte("box"),
		ReplacedAt: then,
	}}
	active[0].ClientName, active[0].Subject, active[0].Roles = "Ein Gerät 📱 \\'\"%_", "zoë  ", "editor\nauthor"
	active[1].HostBox = []byte(strings.Repeat("\x00\xff'", 100<<10/3))
	active[2].HostBox, active[2].EndedAt, active[2].State = nil, then, "ended"
	active[3].CreatedAt = time.Time{}
	Expect(addAll(ctx, store, grants, active)).To(Succeed())
	Expect(addAll(ctx, store, codes, issued)).To(Succeed())
	used := digest(7)
	Expect(store.writer.Create(&[]assertionRow{{Digest: used[:], ForgetAfter: then}}).Error).To(Succeed())
	Expect(store.ChangeAttempts(ctx, nil, func([]attempt.Attempt) []attempt.Attempt {
		return []attempt.Attempt{anAttempt("a", then), anAttempt("b", then)}
	})).To(Succeed())
}

// contents are all rows that a copy takes along, as the store reads them.
func contents(store *Store) (rows []any) {
	GinkgoHelper()
	active, err := grants.read(store.reader, "id >= '' ORDER BY id")
	Expect(err).NotTo(HaveOccurred())
	issued, err := codes.read(store.reader, "id >= '' ORDER BY id")
	Expect(err).NotTo(HaveOccurred())
	var used []assertionRow
	Expect(store.reader.Order("digest").Find(&used).Error).To(Succeed())
	var attempts []attemptRow
	Expect(store.reader.Order("id").Find(&attempts).Error).To(Succeed())
	return []any{active, issued, used, attempts}
}

// using labels specs that use engines besides SQLite.
func using(engines ...string) Labels {
	for _, name := range engines {
		if engineServers[name] != nil {
			return Label("engines")
		}
	}
	return nil
}

func silently(string, int) {}

// behind does something when everything is copied, before it is compared.
func behind(do func()) func(string, int) {
	return func(table string, _ int) {
		if table == copied[len(copied)-1].name {
			do()
		}
	}
}

var _ = Describe("Copying a store", func() {
	for from, openSource := range openNew {
		for to, openTarget := range openNew {
			It("brings everything over from "+from+" to "+to, using(from, to), Label("H4"), func(ctx SpecContext) {
				source, target := openSource(ctx), openTarget(ctx)
				fill(ctx, source)
				found := map[string]int{}
				Expect(Copy(ctx, source, target, func(table string, rows int) { found[table] = rows })).To(Succeed())
				Expect(contents(target)).To(Equal(contents(source)))
				Expect(found).To(And(HaveKeyWithValue("grants", 450), HaveKeyWithValue("attempts", 2)))
			}, NodeTimeout(time.Minute))
		}

		Context("of "+from, using(from), func() {
			var source, target *Store
			BeforeEach(func(ctx SpecContext) {
				source, target = openSource(ctx), openSource(ctx)
				fill(ctx, source)
			})

			It("leaves nothing of one that was interrupted", func(ctx SpecContext) {
				short, interrupt := context.WithCancel(ctx)
				Expect(Copy(short, source, target, func(table string, _ int) {
					if table == "grants" {
						interrupt()
					}
				})).To(MatchError(context.Canceled))
				Expect(contents(target)).To(HaveEach(BeEmpty()))
				Expect(Copy(ctx, source, target, silently)).To(Succeed())
				Expect(contents(target)).To(Equal(contents(source)))
			}, NodeTimeout(time.Minute))

			It("notices in the end what another engine would not keep", func(ctx SpecContext) {
				table := keyedTable{"grants", "id"}
				for _, spoil := range []string{
					"DELETE FROM grants WHERE id = ?", "UPDATE grants SET created_at = created_at + 1 WHERE id = ?",
					"UPDATE grants SET host_box = (SELECT digest FROM used_assertions) WHERE id = ?",
					"UPDATE grants SET subject = 'zoë ' WHERE id = ?", "UPDATE grants SET id = 'x' WHERE id = ?",
				} {
					target := openSource(ctx)
					Expect(Copy(ctx, source, target, silently)).To(Succeed())
					Expect(table.compare(source.reader, target.reader)).To(Succeed())
					Expect(target.writer.Exec(spoil, fmt.Sprintf("%032x", 0)).Error).To(Succeed())
					Expect(table.compare(source.reader, target.reader)).To(MatchError(errDiffer), spoil)
				}
			}, NodeTimeout(2*time.Minute))

			DescribeTable("refuses, before it writes a row, a destination",
				func(ctx SpecContext, said string, prepare func()) {
					prepare()
					before := contents(target)
					Expect(Copy(ctx, source, target, silently)).
						To(MatchError(And(ContainSubstring(said), ContainSubstring("name a new file"))))
					Expect(contents(target)).To(Equal(before))
				},
				Entry("with a row", "used_assertions has rows", func() {
					Expect(target.UseOnce(context.Background(), digest(1000), then)).To(Succeed())
				}),
				Entry("that a service has used", "secret_witness has rows", func() {
					Expect(storeFingerprint(target.writer, unused, oauth.Fingerprint{1})).To(Succeed())
				}),
			)
		})
	}

	It("blocks writes to a SQLite file meanwhile", func(ctx SpecContext) {
		directory := GinkgoT().TempDir()
		source, service, target := openIn(directory), openIn(directory), openFresh()
		Expect(Copy(ctx, source, target, behind(func() {
			short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
			Expect(service.UseOnce(short, digest(0), then)).NotTo(Succeed())
		}))).To(Succeed())
		Expect(service.UseOnce(ctx, digest(0), then)).To(Succeed())
	})

	for name, engine := range engineServers {
		It("notices a source on "+name+" that was written meanwhile", Label("engines"), func(ctx SpecContext) {
			source, target := engine.place(ctx).open(), openFresh()
			fill(ctx, source)
			Expect(Copy(ctx, source, target, behind(func() {
				Expect(source.UseOnce(ctx, digest(8), then)).To(Succeed())
			}))).
				To(MatchError(ContainSubstring(
					"comparing used_assertions: they differ: stop every service on the source")))
			Expect(contents(target)).To(HaveEach(BeEmpty()))
		}, NodeTimeout(time.Minute))
	}
})
