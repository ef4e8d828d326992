package persistence

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"gorm.io/gorm"

	_ "github.com/pasteport/pasteport/adapters/persistence/mysql"
	_ "github.com/pasteport/pasteport/adapters/persistence/postgres"
	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/engines"
	"github.com/pasteport/pasteport/features/storespec"
	"github.com/pasteport/pasteport/features/suite"
)

// server is a database server that all specs of the suite share.
type server struct {
	name   string
	places []place  // of this process, migrated and without rows
	schema []string // columns of a migrated database
}

var engineServers = map[string]*server{"PostgreSQL": {name: "PostgreSQL"}, "MariaDB": {name: "MariaDB"}}

func (s *server) running(ctx context.Context) *engines.Endpoint {
	GinkgoHelper()
	suite.Needs("engines")
	engine, err := engines.Shared(ctx, s.name)
	Expect(err).NotTo(HaveOccurred())
	return engine
}

// place is a database and a file for the server secret.
type place struct{ url, secretFile string }

// place is a database with the tables of today and no rows. Specs use the database of an earlier
// spec again, because making one takes far longer than emptying it.
func (s *server) place(ctx context.Context) (at place) {
	GinkgoHelper()
	if last := len(s.places) - 1; last >= 0 {
		at, s.places = newPlace(s.places[last].url), s.places[:last]
	} else {
		at = placeOn(ctx, s.running(ctx))
		Expect(Migrate(at.url, ServerOptions{})).To(HaveLen(len(migrations)))
		store := at.connect()
		s.schema = s.columns(store)
		Expect(store.Close()).To(Succeed())
	}
	DeferCleanup(s.takeBack, at)
	return at
}

// takeBack empties the database for the next spec, or drops it when a spec has failed in it or has
// changed its schema.
func (s *server) takeBack(ctx SpecContext, at place) {
	GinkgoHelper()
	store := at.connect()
	if CurrentSpecReport().Failed() || !slices.Equal(s.columns(store), s.schema) || store.compareSchema() != nil {
		Expect(store.Close()).To(Succeed())
		Expect(s.running(ctx).Drop(ctx, at.url)).To(Succeed())
		return
	}
	emptied := []string{"schema_migrations"}
	for _, column := range s.schema {
		table, _, _ := strings.Cut(column, ".")
		if !slices.Contains(emptied, table) {
			emptied = append(emptied, table)
			// It takes less time than TRUNCATE, which makes new files.
			Expect(store.writer.Exec("DELETE FROM " + table).Error).To(Succeed())
		}
	}
	Expect(store.Close()).To(Succeed())
	s.places = append(s.places, at)
}

// hostileOptions let a quote of UTF-8 text end too early, if they have an effect: in GBK the
// backslash before it belongs to a character.
var hostileOptions = map[string]string{"PostgreSQL": "", "MariaDB": "?charset=gbk"}

// columns lists the columns of all tables as "table.column".
func (s *server) columns(store *Store) (columns []string) {
	GinkgoHelper()
	namespace := map[string]string{"PostgreSQL": "current_schema()", "MariaDB": "database()"}[s.name]
	Expect(store.reader.Raw(
		"SELECT concat(table_name, '.', column_name) FROM information_schema.columns WHERE table_schema = " +
			namespace +
			" ORDER BY 1").Scan(&columns).Error).To(Succeed())
	return columns
}

// empty is a database without tables.
func (s *server) empty(ctx context.Context) place {
	GinkgoHelper()
	at := placeOn(ctx, s.running(ctx))
	DeferCleanup(s.running(ctx).Drop, at.url)
	return at
}

func placeOn(ctx context.Context, engine *engines.Endpoint) place {
	GinkgoHelper()
	url, err := engine.Database(ctx)
	Expect(err).NotTo(HaveOccurred())
	return newPlace(url)
}

func newPlace(url string) place { return place{url, filepath.Join(GinkgoT().TempDir(), "secret")} }

// connect opens the database as it is. The caller closes it.
func (p place) connect() *Store {
	GinkgoHelper()
	store, err := openServer(p.url, ServerOptions{SecretFile: p.secretFile, Connections: 1})
	Expect(err).NotTo(HaveOccurred())
	return store
}

func (p place) open() *Store {
	GinkgoHelper()
	store, err := OpenServer(p.url, ServerOptions{SecretFile: p.secretFile})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { _ = store.Close() })
	return store
}

// placed remembers where a store is.
type placed struct {
	*Store
	place
}

var _ = Describe("A store on a database server", func() {
	for name, engine := range engineServers {
		Context("of "+name, Label("engines", name), func() {
			storespec.Contract(func() oauth.Store {
				at := engine.place(context.Background())
				return placed{at.open(), at}
			}, func(former oauth.Store) oauth.Store {
				Expect(former.(placed).Close()).To(Succeed())
				return placed{former.(placed).open(), former.(placed).place}
			})
			storespec.RecordingUses(func() oauth.Store { return engine.place(context.Background()).open() })
			storespec.WatchingEnds(func() oauth.Store { return engine.place(context.Background()).open() })
			storespec.Listing(func() oauth.Store { return engine.place(context.Background()).open() })
			storespec.KeepingDocuments(func() oauth.Store { return engine.place(context.Background()).open() })
			itKeepsAttempts(func(ctx SpecContext) *Store { return engine.place(ctx).open() })

			Context("that two replicas share", Label("I22"), func() {
				open := func() oauth.Store {
					at := engine.place(context.Background())
					return &alternating{stores: []oauth.Store{at.open(), at.open()}}
				}
				storespec.Contract(open)
				storespec.RecordingUses(open)
			})

			It("is migrated once by replicas that start together", Label("H7"), func(ctx SpecContext) {
				at := engine.empty(ctx)
				var starting sync.WaitGroup
				for range 6 {
					starting.Go(func() {
						defer GinkgoRecover()
						Expect(at.open().Ping(ctx)).To(Succeed())
					})
				}
				starting.Wait()
				var applied []string
				Expect(at.open().reader.Raw("SELECT id FROM schema_migrations").Scan(&applied).Error).To(Succeed())
				Expect(applied).To(HaveLen(len(migrations)))
			}, NodeTimeout(time.Minute))

			It("gets new columns once from replicas that start together, also after an interruption",
				Label("H7"), func(ctx SpecContext) {
					at, former := engine.empty(ctx), migrations
					store := at.open()
					DeferCleanup(func() { migrations = former })
					columns := []string{
						"ALTER TABLE grants ADD COLUMN note {word} NOT NULL DEFAULT ('')",
						"ALTER TABLE grants ADD COLUMN another {word} NOT NULL DEFAULT ('')",
					}
					migrations = append(slices.Clone(former), migration{"0002_notes", columns})
					if name == "MariaDB" { // it has committed the first statement of a replica that was killed
						Expect(store.writer.Exec(store.engine.schema.Replace(columns[0])).Error).To(Succeed())
					}
					var starting sync.WaitGroup
					for range 6 {
						other := at.connect()
						DeferCleanup(other.Close)
						starting.Go(func() {
							defer GinkgoRecover()
							_, err := other.migrate()
							Expect(err).NotTo(HaveOccurred())
						})
					}
					starting.Wait()
					Expect(keep(ctx, store, aGrant("g"))).To(Succeed())
				}, NodeTimeout(time.Minute))

			DescribeTable("goes to the next address when",
				Label("N14", "I22"), func(ctx SpecContext, first func() string) {
					at, address := engine.place(ctx), first()
					at.url = strings.Replace(at.url, "@", "@"+address+",", 1)
					Expect(keep(ctx, at.open(), aGrant("g"))).To(Succeed())
					Expect(Redacted(at.url)).To(ContainSubstring("//" + address + ",127.0.0.1:"))
				},
				Entry("no server listens at the first one", NodeTimeout(time.Minute), func() string {
					gone, err := engines.FreePort()
					Expect(err).NotTo(HaveOccurred())
					return fmt.Sprintf("127.0.0.1:%d", gone)
				}),
				Entry("the server at the first one says nothing", NodeTimeout(time.Minute), func() string {
					silent, err := net.Listen("tcp", "127.0.0.1:0")
					Expect(err).NotTo(HaveOccurred())
					DeferCleanup(silent.Close)
					return silent.Addr().String()
				}),
			)

			It("applies a change to the newest state, also right after reading an older one",
				Label("I22", "E9"), func(ctx SpecContext) {
					at := engine.place(ctx)
					store, other := at.open(), at.open()
					for id, whenAlive := range map[string]error{"written": nil, "refused": oauth.ErrReused} {
						Expect(keep(ctx, store, aGrant(id))).To(Succeed())
						_, err := storespec.On(store).Grant(ctx, id)
						Expect(err).NotTo(HaveOccurred())
						ending := func(alive *bool) func(*oauth.AccessGrant) error {
							return func(g *oauth.AccessGrant) error {
								if *alive = g.End(oauth.EndedByHost, then); *alive {
									return whenAlive
								}
								return nil
							}
						}
						Expect(storespec.On(other).UpdateGrant(ctx, id, func(g *oauth.AccessGrant) error {
							g.End(oauth.EndedByHost, then)
							return nil
						})).To(Succeed())
						var alive bool
						Expect(storespec.On(store).UpdateGrant(ctx, id, ending(&alive))).To(Succeed(), id)
						Expect(alive).To(BeFalse(), id)
					}
				}, NodeTimeout(time.Minute))

			It("gives up a change that another process overtakes sixteen times, and counts that",
				Label("N14", "I22"), func(ctx SpecContext) {
					at := engine.place(ctx)
					store, other := at.open(), at.open()
					Expect(keep(ctx, store, aGrant("g"))).To(Succeed())
					runs := 0
					Expect(storespec.On(store).UpdateGrant(ctx, "g", func(g *oauth.AccessGrant) error {
						runs++
						g.End(oauth.EndedByHost, then)
						return other.writer.Exec("UPDATE grants SET version = version + 1").Error
					})).To(MatchError(oauth.ErrUnavailable))
					Expect(runs).To(Equal(16))
					Expect(store.Collisions()).To(BeEquivalentTo(16))
					Expect(ended(ctx, store, "g")).To(BeFalse())
				}, NodeTimeout(time.Minute))

			It("keeps every text as a client has sent it", Label("H3"), func(ctx SpecContext) {
				at := engine.place(ctx)
				store, err := OpenServer(at.url+hostileOptions[name], ServerOptions{SecretFile: at.secretFile})
				Expect(err).NotTo(HaveOccurred())
				DeferCleanup(store.Close)
				hostile := anAttempt("a", then)
				hostile.Agent = `縗', '', ''); -- ' " \' \\ ? $1 :x %s` + "\n\x1a\u2028"
				hostile.Steps[0].Reason = "', (SELECT 1), '" + hostile.Agent
				Expect(store.ChangeAttempts(ctx, nil, func([]attempt.Attempt) []attempt.Attempt {
					return []attempt.Attempt{hostile}
				})).To(Succeed())
				Expect(store.Attempts(ctx, then)).To(Equal([]attempt.Attempt{hostile}))
			})

			It("lets a statement wait for a connection without holding anything that others need",
				Label("D30"), func(ctx SpecContext) {
					at := engine.place(ctx)
					store, err := OpenServer(at.url, ServerOptions{SecretFile: at.secretFile, Connections: 1})
					Expect(err).NotTo(HaveOccurred())
					DeferCleanup(store.Close)
					pool, err := store.writer.DB()
					Expect(err).NotTo(HaveOccurred())
					Expect(keep(ctx, store, aGrant("g"))).To(Succeed())
					var reading sync.WaitGroup
					Expect(store.transaction(ctx, func(*gorm.DB) error {
						for range 2 {
							reading.Go(func() {
								defer GinkgoRecover()
								_, err := store.Attempts(ctx, then)
								Expect(err).NotTo(HaveOccurred())
							})
						}
						Eventually(func() int64 {
							return pool.Stats().WaitCount
						}).WithTimeout(sqlite.BusyTimeout).Should(BeEquivalentTo(2))
						return nil
					})).To(Succeed())
					reading.Wait()
				}, NodeTimeout(time.Minute))
		})
	}
})

var _ = Describe("A store on a database server without a file for the server secret", Label("F9"), func() {
	It("is refused before it writes anything", func() {
		_, err := OpenServer("postgres://me:geheim@127.0.0.1:1/name", ServerOptions{})
		Expect(err).To(MatchError(ContainSubstring("ServerOptions.SecretFile is empty: name the file")))
	})
})

var _ = Describe("A change that a database server has refused", Label("I22", "D30"), func() {
	It("runs again after a deadlock or a stale snapshot, and in no other case", func() {
		for _, refusal := range []error{&mysql.MySQLError{Number: 1213}, &mysql.MySQLError{Number: 1020},
			&pgconn.PgError{Code: "40001"}, &pgconn.PgError{Code: "40P01"}} {
			Expect(collides(failed("updating a grant", refusal))).To(BeTrue(), "%v", refusal)
		}
		for _, number := range []uint16{1205, 1047, 1180} { // the longest wait, left its cluster, failed to commit
			Expect(collides(failed("updating a grant", &mysql.MySQLError{Number: number}))).To(BeFalse(), "%d", number)
		}
	})
})

var _ = Describe("The address of a database server", func() {
	It("is refused, and not repeated", func() {
		for _, address := range []string{"oracle://me:geheim@host/name", "geheim", "postgres:///name",
			"postgres://me:/geheim@host/name", "mysql://me:7/geheim@host/name", "postgres://me:7#geheim@host/name",
			"postgres://me:geheim@host:shibboleth/name"} {
			Expect(IsServer(address)).To(BeFalse(), address)
			_, err := OpenServer(address, ServerOptions{SecretFile: "unused"})
			Expect(err).To(MatchError(ContainSubstring("postgres://user:password@host/name")))
			Expect(err.Error()).NotTo(Or(ContainSubstring("geheim"), ContainSubstring("shibboleth")))
			Expect(Redacted(address)).NotTo(Or(ContainSubstring("geheim"), ContainSubstring("shibboleth")))
		}
	})

	It("is shown without the password and the options", func() {
		Expect(Redacted("postgres://me:geheim@host:5432/name?sslpassword=geheim")).
			To(Equal("postgres://host:5432/name"))
	})
})

var _ = Describe("A database server that only reads", Label("A33", "engines"), func() {
	It("is not ready", func(ctx SpecContext) {
		at := engineServers["PostgreSQL"].place(ctx)
		store, err := OpenServer(at.url, ServerOptions{SecretFile: at.secretFile, Connections: 1})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { _ = store.Close() })
		Expect(store.Ping(ctx)).To(Succeed())
		Expect(store.writer.Exec("SET default_transaction_read_only = on").Error).To(Succeed())
		Expect(store.Ping(ctx)).To(MatchError(oauth.ErrUnavailable))
	})
})

var _ = Describe("Attempts on a database server", Label("engines", "I22"), func() {
	It("are changed once when a change of another process makes the transaction run again", func(ctx SpecContext) {
		store := engineServers["PostgreSQL"].empty(ctx).open()
		for _, statement := range []string{ // a sequence keeps its number when the statement fails
			"CREATE SEQUENCE added",
			`CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF nextval('added') = 2 THEN RAISE EXCEPTION 'a deadlock' USING ERRCODE = '40P01'; END IF;
				RETURN new;
			END $$`,
			"CREATE TRIGGER fail_once BEFORE INSERT ON attempts FOR EACH ROW EXECUTE FUNCTION fail_once()",
		} {
			Expect(store.writer.Exec(statement).Error).To(Succeed())
		}
		Expect(store.ChangeAttempts(ctx, nil, func([]attempt.Attempt) []attempt.Attempt {
			return []attempt.Attempt{anAttempt("a", then), anAttempt("b", then)}
		})).To(Succeed())
		Expect(store.Collisions()).To(BeEquivalentTo(1))
		Expect(store.Attempts(ctx, then)).To(HaveLen(2))
	})
})
