package features_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/pasteport/pasteport/bootstrap/demosite"
)

// Do runs the built program and waits for its exit.
func (b Binary) Do(environment []string, args ...string) Ran {
	GinkgoHelper()
	run := b.Run(environment, args...)
	Eventually(run).WithTimeout(time.Minute).Should(gexec.Exit())
	return Ran{run.ExitCode(), string(run.Out.Contents()), string(run.Err.Contents())}
}

// storeCheck is a line of "pasteport store check --json".
type storeCheck struct{ Check, Found, Problem string }

func (w *World) CheckStore(ctx context.Context) (checks []storeCheck, ran Ran) {
	GinkgoHelper()
	ran = Run(ctx, append([]string{"store", "check", "--json"}, w.Kept()...)...)
	Expect(json.Unmarshal([]byte(ran.Out), &checks)).To(Succeed(), ran.Err)
	return checks, ran
}

// attempts returns the traced connections of a world.
func (w *World) attempts(ctx context.Context) string {
	GinkgoHelper()
	listed := Run(ctx, append([]string{"connections", "--json"}, w.Kept()...)...)
	Expect(listed.Code).To(BeZero(), listed.Err)
	return listed.Out
}

var _ = Describe("Backing up the store", Label("I19"), func() {
	It("copies the SQLite file while a service runs, and a service starts on the copy", func(ctx SpecContext) {
		world := NewWorld()
		world.inFile()
		client, file := world.NewClient(), filepath.Join(GinkgoT().TempDir(), "it's a backup.db")
		backup := func() Ran { return Run(ctx, append([]string{"store", "backup", file}, world.Kept()...)...) }
		before := client.Connect(ctx)
		done := backup()
		Expect(done.Code).To(BeZero(), done.Err)
		Expect(done.Out).
			To(ContainSubstring("back up the server secret, " + filepath.Join(world.Dir, "oauth.db.secret")))
		Expect(must(os.Stat(file)).Mode().Perm()).To(BeEquivalentTo(0o600))
		Expect(backup()).To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring("file exists"))))

		after := client.Connect(ctx)
		world.Stop()
		Expect(os.Rename(file, filepath.Join(world.Dir, "oauth.db"))).To(Succeed())
		world.start(world.Issuer[len("http://"):])
		Expect(world.Call(ctx, before.Access).StatusCode).To(Equal(http.StatusOK))
		Expect(world.Call(ctx, after.Access)).To(BeChallenged(world, "invalid_token"))
		_, checked := world.CheckStore(ctx)
		Expect(checked.Code).To(BeZero(), checked.Out)
	})

	It("names the tool of a database server", Label("engines"), func(ctx SpecContext) {
		world := WorldOn(databaseServers["PostgreSQL"].database())
		file := filepath.Join(GinkgoT().TempDir(), "backup.db")
		Expect(Run(ctx, append([]string{"store", "backup", file}, world.Kept()...)...)).
			To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring("pg_dump"))))
		Expect(file).NotTo(BeAnExistingFile())
	})

	It("needs the name of the file", func(ctx SpecContext) {
		Expect(Run(ctx, "store", "backup")).
			To(And(HaveField("Code", 2), HaveField("Err", ContainSubstring("backup FILE"))))
	})
})

var _ = Describe("Moving a site from its SQLite file to a database server", Label("engines", "H7", "J2"), func() {
	var binary Binary
	BeforeEach(func() { binary = BuildBinary() })

	for name, server := range databaseServers {
		It("of "+name+" does not affect connected clients", func(ctx SpecContext) {
			world := NewWorld()
			world.inFile()
			url, client := server.database(), world.NewClient()
			tokens, code, ended := client.Connect(ctx), client.Authorize(ctx), client.Connect(ctx)
			client.Revoke(ctx, ended.Refresh)
			refreshed := client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
			world.Stop()
			before, grants := world.attempts(ctx), world.Grants(ctx)

			environment := []string{"PASTEPORT_DATABASE=" + url}
			migrated := binary.Do(environment, "store", "migrate", "--data", world.Dir)
			Expect(migrated).To(And(HaveField("Code", 0),
				HaveField("Out", ContainSubstring("applied: 0001_codes_grants_and_attempts"))), migrated.Err)
			Expect(binary.Do(environment, "store", "migrate", "--data", world.Dir).Out).
				To(ContainSubstring("no migrations needed"))
			copied := binary.Do(environment, "store", "copy", "--data", world.Dir)
			Expect(copied.Code).To(BeZero(), copied.Err)
			Expect(copied.Out).To(And(MatchRegexp(
				`authorization_codes +3 rows\ngrants +2 rows\nused_assertions +0 rows\n`+
					`client_documents +1 row\nattempts +\d+ rows?\nSource and copy were compared and are equal`),
				ContainSubstring(filepath.Join(world.Dir, "oauth.db.secret")), Not(ContainSubstring("\x1b"))))

			world.Database = url
			Expect(world.attempts(ctx)).To(Equal(before))
			Expect(world.Grants(ctx)).To(Equal(grants))
			world.start(world.Issuer[len("http://"):])
			Expect(world.Call(ctx, refreshed.Access).StatusCode).To(Equal(http.StatusOK))
			Expect(world.Call(ctx, ended.Access)).To(BeChallenged(world, "invalid_token"))
			Expect(world.Connections(ctx, world.Token).grants()).To(HaveLen(2))
			Expect(client.Token(ctx, client.Exchange(code)).StatusCode).To(Equal(http.StatusOK))
			next := client.Token(ctx, client.Refresh(refreshed.Refresh))
			Expect(next.StatusCode).To(Equal(http.StatusOK), next.Text)
			Expect(world.Call(ctx, next.Tokens().Access).StatusCode).To(Equal(http.StatusOK))
			Expect(world.Connections(ctx, world.Token).End(ctx, "").grants()).To(BeEmpty())
			Expect(world.Call(ctx, next.Tokens().Access)).To(BeChallenged(world, "invalid_token"))
			client.Connect(ctx)
			Expect(world.attempts(ctx)).To(ContainSubstring(client.ID))
			_, checked := world.CheckStore(ctx)
			Expect(checked.Code).To(BeZero(), checked.Out)

			again := binary.Do(environment, "store", "copy", "--data", world.Dir)
			Expect(again).To(
				And(HaveField("Code", 1), HaveField("Err", ContainSubstring("the destination has to be empty"))))
		}, NodeTimeout(2*time.Minute))

		It("of "+name+" is refused at the start of a replica with another server secret", func(ctx SpecContext) {
			world := NewWorld()
			world.inFile()
			url, client := server.database(), world.NewClient()
			client.Connect(ctx)
			world.Stop()
			Expect(Run(ctx, "store", "copy", "--data", world.Dir, "--to", url).Code).To(BeZero())
			elsewhere := GinkgoT().TempDir()
			started := binary.Do(nil, "serve", "--dev", "--addr", "127.0.0.1:0", "--admin-addr", "off", "--data",
				elsewhere, "--database", url)
			Expect(started).To(And(HaveField("Code", 1),
				HaveField("Err", ContainSubstring("copy it from another replica"))))
			checked := Run(ctx, "store", "check", "--data", elsewhere, "--database", url)
			Expect(checked.Code).To(Equal(1))
			Expect(checked.Out).To(MatchRegexp(`(?m)^FAILED  server secret .*name it with server-secret`))
			back := filepath.Join(elsewhere, "back.db")
			Expect(Run(ctx, "store", "copy", "--data", world.Dir, "--from", url, "--to", "sqlite://"+back).Out).
				To(ContainSubstring("copy the server secret, " + filepath.Join(world.Dir, "oauth.db.secret") + ", to " +
					back + ".secret"))
		}, NodeTimeout(2*time.Minute))
	}
})

var _ = Describe("Maintaining a store on the command line", func() {
	It("passes every check of a store in use, also beside its service", func(ctx SpecContext) {
		world := NewWorld()
		client := world.NewClient()
		tokens := client.ConnectAs(ctx, world.TokenFor(ctx, "ada", demosite.Author))
		client.Token(ctx, client.Refresh(tokens.Refresh))
		client.Authorize(ctx)
		client.Revoke(ctx, client.Connect(ctx).Refresh)
		checks, ran := world.CheckStore(ctx)
		Expect(ran.Code).To(BeZero(), ran.Out)
		Expect(checks).To(ContainElements(storeCheck{"authorization_codes", "rows: 3, all readable", ""},
			storeCheck{"grants", "rows: 2, all readable", ""}, HaveField("Check", "durability"),
			HaveField("Check", "server secret")))
		Expect(checks).To(HaveEach(And(HaveField("Problem", ""), HaveField("Found", Not(BeEmpty())))))
		lines := Run(ctx, append([]string{"store", "check"}, world.Kept()...)...).Out
		Expect(strings.Split(strings.TrimSpace(lines), "\n")).To(And(HaveLen(len(checks)), HaveEach(HavePrefix("ok "))))
		Expect(lines).NotTo(Or(ContainSubstring(tokens.Access), ContainSubstring(world.Token),
			ContainSubstring(serverSecret(world))))
	})

	It("fails when a check fails", func(ctx SpecContext) {
		world := NewWorld()
		world.inFile()
		world.NewClient().Connect(ctx)
		Expect(world.database().ExecContext(ctx, "UPDATE grants SET state = 'paused'")).Error().NotTo(HaveOccurred())
		checks, ran := world.CheckStore(ctx)
		Expect(ran).To(And(HaveField("Code", 1), HaveField("Err", MatchRegexp(`pasteport: 1 of \d+ checks failed`))))
		Expect(checks).To(
			ContainElement(And(HaveField("Check", "grants"),
				HaveField("Problem", ContainSubstring("restore the database from a backup")))))
	})

	It("copies again after an interrupted copy, and never to a copy", func(ctx SpecContext) {
		world := NewWorld()
		world.inFile()
		world.NewClient().Connect(ctx)
		world.Stop()
		copying := []string{"store", "copy", "--data", world.Dir, "--to",
			"sqlite://" + filepath.Join(GinkgoT().TempDir(), "oauth.db")}
		interrupted, press := context.WithCancel(ctx)
		press()
		Expect(Run(interrupted, copying...)).
			To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring("has left nothing: run the same command"))))
		Expect(Run(ctx, copying...).Code).To(BeZero())
		Expect(Run(ctx, copying...)).
			To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring("the destination has to be empty"))))
	})

	DescribeTable("fails with a message that contains no password",
		func(ctx SpecContext, code int, said string, args ...string) {
			world := NewWorld()
			world.inFile()
			world.Stop()
			args = append([]string{"store"}, args...)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "WORLD", world.Dir)
			}
			refused := Run(ctx, slices.Concat(args, []string{"--data", world.Dir})...)
			Expect(refused.Code).To(Equal(code), refused.Out)
			Expect(refused.Err).To(ContainSubstring(said))
			Expect(refused.Out + refused.Err).NotTo(ContainSubstring("hidden"))
		},
		Entry("when the copy has no destination", 2, "add --to, or set database", "copy"),
		Entry("when an address names an unknown engine", 2, "--from is not a store", "copy", "--from",
			"oracle://user:hidden@host/name"),
		Entry("when source and destination are the same", 1, "has to be empty", "copy", "--to",
			"sqlite://WORLD/oauth.db"),
		Entry("when the source does not exist", 1, "no such file", "copy", "--from", "sqlite:///nowhere/oauth.db",
			"--to", "sqlite://WORLD/other.db"),
		Entry("when the destination does not respond", 1, "the server does not let us in", "copy", "--to",
			"postgres://user:hidden@127.0.0.1:1/name"),
		Entry("when the store to check does not respond", 1, "the server does not let us in", "check", "--database",
			"mysql://user:hidden@127.0.0.1:1/name"),
	)

	It("requires the server secret of the source", Label("J2"), func(ctx SpecContext) {
		world := NewWorld()
		world.inFile()
		world.Stop()
		Expect(os.Remove(filepath.Join(world.Dir, "oauth.db.secret"))).To(Succeed())
		target := filepath.Join(GinkgoT().TempDir(), "oauth.db")
		Expect(Run(ctx, "store", "copy", "--data", world.Dir, "--to", "sqlite://"+target)).
			To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring("the copy needs the server secret"))))
		Expect(target).NotTo(BeAnExistingFile())
	})

	It("fails to check a missing store", func(ctx SpecContext) {
		Expect(Run(ctx, "store", "check", "--data", "/nowhere")).
			To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring("name its folder with --data"))))
	})
})
