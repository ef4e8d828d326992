package features_test

import (
	"context"
	"database/sql"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/types"
)

// database opens the OAuth database of a world as another program does.
func (w *World) database() *sql.DB {
	GinkgoHelper()
	w.inFile()
	db := must(sql.Open("sqlite", filepath.Join(w.Dir, "oauth.db")))
	DeferCleanup(db.Close)
	return db
}

// Rows reads every table of the OAuth database but the trace, which is written asynchronously.
func (w *World) Rows(ctx context.Context) map[string][]string {
	GinkgoHelper()
	db := w.database()
	rows := map[string][]string{}
	for _, table := range texts(ctx, db,
		"SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'attempts'") {
		columns := texts(ctx, db, "SELECT name FROM pragma_table_info('"+table+"')")
		rows[table] = texts(ctx, db, "SELECT concat_ws('|', quote("+strings.Join(columns, "), quote(")+")) FROM "+table+
			" ORDER BY 1")
	}
	return rows
}

func texts(ctx context.Context, db *sql.DB, question string) (answers []string) {
	GinkgoHelper()
	rows := must(db.QueryContext(ctx, question))
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var answer string
		Expect(rows.Scan(&answer)).To(Succeed())
		answers = append(answers, answer)
	}
	Expect(rows.Err()).NotTo(HaveOccurred())
	return answers
}

// Lock blocks every write to the OAuth database until unlock.
func (w *World) Lock(ctx context.Context) (unlock func()) {
	GinkgoHelper()
	other := must(w.database().Conn(ctx))
	Expect(other.ExecContext(ctx, "BEGIN EXCLUSIVE")).Error().NotTo(HaveOccurred())
	return func() {
		GinkgoHelper()
		Expect(other.ExecContext(ctx, "ROLLBACK")).Error().NotTo(HaveOccurred())
		Expect(other.Close()).To(Succeed())
	}
}

// Hide moves files out of the world's folder until back restores them.
func (w *World) Hide(names ...string) (back func()) {
	GinkgoHelper()
	w.inFile()
	elsewhere := GinkgoT().TempDir()
	for _, name := range names {
		Expect(os.Rename(filepath.Join(w.Dir, name), filepath.Join(elsewhere, name))).To(Succeed())
	}
	notice()
	return func() {
		GinkgoHelper()
		for _, name := range names {
			Expect(os.Rename(filepath.Join(elsewhere, name), filepath.Join(w.Dir, name))).To(Succeed())
		}
		notice()
	}
}

// notice waits until the store checks again whether its file was replaced.
func notice() {
	GinkgoHelper()
	since := time.Now()
	Eventually(func() time.Duration { return time.Since(since) }).Should(BeNumerically(">", time.Millisecond))
}

// Copy reads files of the world's folder, which Paste can write again.
func (w *World) Copy(names ...string) map[string][]byte {
	GinkgoHelper()
	w.inFile()
	copied := map[string][]byte{}
	for _, name := range names {
		copied[name] = must(os.ReadFile(filepath.Join(w.Dir, name)))
	}
	return copied
}

// Paste writes the files that Copy has read.
func (w *World) Paste(copied map[string][]byte) {
	GinkgoHelper()
	for name, content := range copied {
		Expect(os.WriteFile(filepath.Join(w.Dir, name), content, 0o600)).To(Succeed())
	}
	notice()
}

// Stake is the state that a person and their client would lose if an outage counted as a refusal.
type Stake struct {
	*Client
	Tokens Tokens
	Code   string // not yet exchanged
	Page   Page   // not yet submitted
	Leave  Tokens // about to be revoked
}

// NewStake connects a client and leaves each kind of request pending.
func NewStake(ctx context.Context, client *Client) *Stake {
	GinkgoHelper()
	return &Stake{client, client.Connect(ctx), client.Authorize(ctx), client.Consent(ctx), client.Connect(ctx)}
}

// Try sends every kind of request that needs the store, all at once.
func (s *Stake) Try(ctx context.Context) map[string]Response {
	return together(map[string]func() Response{
		"exchange": func() Response { return s.Token(ctx, s.Exchange(s.Code)) },
		"refresh":  func() Response { return s.Token(ctx, s.Refresh(s.Tokens.Refresh)) },
		"revoke":   func() Response { return s.Revoke(ctx, s.Leave.Refresh) },
		"approve":  func() Response { return s.Page.Approve(ctx, s.World.Token) },
		"call":     func() Response { return s.World.Call(ctx, s.Tokens.Access) },
	})
}

// ExpectUntouched completes each request that the outage interrupted.
func (s *Stake) ExpectUntouched(ctx context.Context) {
	GinkgoHelper()
	if s.World.Clock != nil {
		// Beyond the grace window, a refresh token that was replaced meanwhile would end the grant.
		s.World.Clock.Advance(time.Minute)
	}
	Expect(s.World.Call(ctx, s.Tokens.Access).StatusCode).To(Equal(http.StatusOK))
	Expect(s.World.Call(ctx, s.Leave.Access).StatusCode).To(Equal(http.StatusOK))
	answers := s.Try(ctx)
	Expect(answers["exchange"].StatusCode).To(Equal(http.StatusOK), answers["exchange"].Text)
	Expect(answers["refresh"].StatusCode).To(Equal(http.StatusOK), answers["refresh"].Text)
	Expect(answers["revoke"].StatusCode).To(Equal(http.StatusOK))
	Expect(answers["approve"].StatusCode).To(Equal(http.StatusSeeOther), answers["approve"].Text)
	Expect(s.World.Call(ctx, s.Leave.Access)).To(BeChallenged(s.World, "invalid_token"))
	Expect(s.World.Call(ctx, answers["refresh"].Tokens().Access).StatusCode).To(Equal(http.StatusOK))
}

// together runs the calls at the same moment and returns their responses.
func together[K comparable](calls map[K]func() Response) map[K]Response {
	answers := make([]Response, len(calls))
	names := slices.Collect(maps.Keys(calls))
	start := make(chan struct{})
	var callers sync.WaitGroup
	for i, name := range names {
		callers.Go(func() {
			defer GinkgoRecover()
			<-start
			answers[i] = calls[name]()
		})
	}
	close(start)
	callers.Wait()
	named := map[K]Response{}
	for i, name := range names {
		named[name] = answers[i]
	}
	return named
}

// BePutOff matches the response of the token and revocation endpoints during an outage: 503 with
// Retry-After.
func BePutOff() types.GomegaMatcher {
	return And(BeRefusedAs(http.StatusServiceUnavailable, "temporarily_unavailable"),
		HaveField("Header", HaveKey("Retry-After")))
}

// BeAnOutage matches the responses to all writes during an outage.
func BeAnOutage() types.GomegaMatcher {
	return And(
		HaveKeyWithValue("exchange", BePutOff()), HaveKeyWithValue("refresh", BePutOff()),
		HaveKeyWithValue("revoke", BePutOff()),
		HaveKeyWithValue("approve", And(
			BeAPage(http.StatusServiceUnavailable, "temporarily_unavailable"),
			HaveField("Header", HaveKey("Retry-After")))),
	)
}

// BeUnchecked matches the MCP server's response when it cannot check the token: without a
// challenge, so that no client discards its tokens.
func BeUnchecked() types.GomegaMatcher {
	return And(
		HaveField("StatusCode", http.StatusServiceUnavailable),
		HaveField("Header", And(HaveKey("Retry-After"), Not(HaveKey("Www-Authenticate")))),
		HaveField("Tokens().Error", "temporarily_unavailable"),
	)
}

var _ = Describe("Losing the store", Label("N14", "D30", "E10", "G11"), func() {
	const file, log, index = "oauth.db", "oauth.db-wal", "oauth.db-shm"
	var world *World
	var stake *Stake
	BeforeEach(func(ctx SpecContext) {
		world = NewWorld()
		stake = NewStake(ctx, world.NewClient())
	})
	lose := func(ctx context.Context) {
		GinkgoHelper()
		answers := stake.Try(ctx)
		Expect(answers).To(BeAnOutage())
		Expect(answers).To(HaveKeyWithValue("call", BeUnchecked()))
		Expect(atOnce(8, func() Response { return world.Call(ctx, stake.Tokens.Access) })).To(HaveEach(BeUnchecked()))
	}

	It("to a long write of another process fails writes with 503, and no reads", Label("long"), func(ctx SpecContext) {
		unlock := world.Lock(ctx)
		answers := stake.Try(ctx)
		Expect(answers).To(BeAnOutage())
		Expect(answers["call"].StatusCode).To(Equal(http.StatusOK))
		unlock()
		stake.ExpectUntouched(ctx)
	}, SpecTimeout(20*time.Second)) // the store waits five seconds, and requests wait in parallel

	DescribeTable("because its file is missing fails requests with 503 until the file is back",
		func(ctx SpecContext, names ...string) {
			back := world.Hide(names...)
			lose(ctx)
			Expect(filepath.Join(world.Dir, file)).NotTo(BeAnExistingFile())
			back()
			stake.ExpectUntouched(ctx)
			world.Restart()
			Expect(world.Call(ctx, stake.Tokens.Access).StatusCode).To(Equal(http.StatusOK))
		},
		Entry("alone", file),
		Entry("with its log and index", file, log, index),
	)

	It("permanently fails requests with 503 until a copy is restored", func(ctx SpecContext) {
		copied := world.Copy(file, log)
		world.Hide(file, log, index)
		lose(ctx)
		world.Paste(copied)
		stake.ExpectUntouched(ctx)
	})

	It("to an empty file fails requests with 503, and reports no token as invalid", func(ctx SpecContext) {
		back := world.Hide(file, log, index)
		world.Paste(map[string][]byte{file: nil})
		lose(ctx)
		back()
		stake.ExpectUntouched(ctx)
	})

	It("to a server secret that is not its own fails requests with 503, issues nothing and is not ready",
		Label("J2"), func(ctx SpecContext) {
			operated := Operate(selfRegistration)
			operated.inFile()
			world, stake = operated.World, NewStake(ctx, operated.NewClient())
			ready := func() int { return operated.AskAdmin(ctx, "/readyz").StatusCode }
			Expect(ready()).To(Equal(http.StatusOK))
			own := serverSecret(world)
			world.Paste(map[string][]byte{"oauth.db.secret": []byte(strings.Repeat("o", 32))})
			Eventually(ready).WithTimeout(patience).Should(Equal(http.StatusServiceUnavailable))
			lose(ctx)
			Expect(stake.AskFor(ctx, stake.Request())).
				To(BeAPage(http.StatusServiceUnavailable, "temporarily_unavailable"))
			Expect(world.Register(ctx, map[string]any{"redirect_uris": []string{"https://client.example/callback"}})).
				To(BePutOff())
			world.Paste(map[string][]byte{"oauth.db.secret": []byte(own)})
			Eventually(ready).WithTimeout(patience).Should(Equal(http.StatusOK))
			stake.ExpectUntouched(ctx)
		})

	It("lets a person say no", Label("B5"), func(ctx SpecContext) {
		page := world.NewClient().Consent(ctx)
		back := world.Hide(file, log, index)
		Expect(page.Deny(ctx).Target().Query().Get("error")).To(Equal("access_denied"))
		back()
	})

	It("describes the error only in the log", func(ctx SpecContext) {
		back := world.Hide(file)
		for _, answer := range stake.Try(ctx) {
			Expect(answer.Text).
				NotTo(Or(ContainSubstring(world.Dir), ContainSubstring("oauth.db"), ContainSubstring("no such file")))
		}
		Expect(world.Log.String()).To(ContainSubstring("oauth.db: no such file or directory"))
		back()
	})
})

// confinedSize is how large files of a confined program can become: 800 blocks of 512 bytes.
const confinedSize = 800 * 512

// Confine limits the size of files that the program writes, as on a nearly full disk: the system
// fails in the middle of a write.
func (b Binary) Confine() Binary {
	GinkgoHelper()
	if _, err := exec.LookPath("sh"); err != nil {
		Skip("there is no shell to limit the program with")
	}
	script := filepath.Join(GinkgoT().TempDir(), "confined")
	text := "#!/bin/sh\nulimit -S -f 800\nexec '" + string(b) + "' \"$@\"\n"
	Expect(os.WriteFile(script, []byte(text), 0o700)).To(Succeed())
	return Binary(script)
}

// Fill fills the disk with refreshes, and then with revocations, which are the smallest writes.
func Fill(ctx context.Context, client *Client) {
	GinkgoHelper()
	tokens := client.Connect(ctx)
	spendable := []string{tokens.Access}
	answer := client.Token(ctx, client.Refresh(tokens.Refresh))
	for ; answer.StatusCode == http.StatusOK; answer = client.Token(ctx, client.Refresh(tokens.Refresh)) {
		tokens = answer.Tokens()
		spendable = append(spendable, tokens.Access)
	}
	Expect(answer).To(BePutOff())
	for _, access := range spendable {
		if answer = client.Revoke(ctx, access); answer.StatusCode != http.StatusOK {
			break
		}
	}
	Expect(answer).To(BePutOff())
}

var _ = Describe("Running out of disk space", Label("N14", "D30", "E10"), func() {
	var binary Binary
	BeforeEach(func() { binary = BuildBinary() })

	It("responds to every write with 503 and Retry-After, loses nothing, and continues when there is space again",
		func(ctx SpecContext) {
			dir := filepath.Join(GinkgoT().TempDir(), "site")
			site := binary.Confine().Serve(NewClientSite(), dir, tokenVariable+"=chosen-by-the-editor")
			site.Token = "chosen-by-the-editor"
			stake := NewStake(ctx, site.NewClient())
			Fill(ctx, site.NewClient())

			answers := stake.Try(ctx)
			Expect(answers).To(BeAnOutage())
			Expect(answers["call"].StatusCode).To(Equal(http.StatusOK))

			Expect(site.database().ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")).Error().NotTo(HaveOccurred())
			stake.ExpectUntouched(ctx)
		}, SpecTimeout(time.Minute))

	It("is not ready while it cannot write, logs the reason, and is ready when there is space again",
		Label("operations"), func(ctx SpecContext) {
			site := binary.Confine().
				ServeWithAdmin("127.0.0.1:0", NewClientSite(), filepath.Join(GinkgoT().TempDir(), "site"),
					tokenVariable+"=chosen-by-the-editor")
			site.Token = "chosen-by-the-editor"
			Expect(site.Ready(ctx).StatusCode).To(Equal(http.StatusOK))
			Fill(ctx, site.NewClient())
			ready := func() Response { return site.Ready(ctx) }
			Eventually(ready).WithTimeout(patience).Should(And(
				HaveField("StatusCode", http.StatusServiceUnavailable),
				HaveField("Text", ContainSubstring(`{"name":"oauth database","problem":"`))))
			Eventually(site.Err).WithTimeout(patience).
				Should(gbytes.Say(`level=WARN msg="a readiness check fails" check="oauth database" error="[^"]+disk`))

			Expect(site.database().ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")).Error().NotTo(HaveOccurred())
			Eventually(ready).WithTimeout(patience).Should(HaveField("StatusCode", http.StatusOK))
			Eventually(site.Err).WithTimeout(patience).Should(gbytes.Say(`a readiness check passes again`))
		}, SpecTimeout(time.Minute))
})
