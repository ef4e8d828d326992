package features_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/engines"
)

// Recorder relays connections to a database server and records the statements that it reads on the
// way.
type Recorder struct {
	URL  string // of the database
	next func(io.Reader, bool) (message []byte, statement string, err error)

	mu         sync.Mutex
	statements []string
}

func NewRecorder(database string) *Recorder {
	GinkgoHelper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	DeferCleanup(listener.Close)
	address := must(url.Parse(database))
	r, behind := &Recorder{next: nextOfMariaDB}, address.Host
	if address.Scheme == "postgres" {
		r.next = nextOfPostgres
		address.RawQuery += "&default_query_exec_mode=exec" // sends the text of a statement with each execution
	}
	address.Host = listener.Addr().String()
	r.URL = address.String()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", behind)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() {
				_, _ = io.Copy(client, server)
				_ = errors.Join(client.Close(), server.Close())
			}()
			go r.record(client, server)
		}
	}()
	return r
}

func (r *Recorder) record(client, server net.Conn) {
	defer client.Close()
	defer server.Close()
	for first := true; ; first = false {
		message, statement, err := r.next(client, first)
		if err != nil {
			return
		}
		if statement != "" {
			r.mu.Lock()
			r.statements = append(r.statements, statement)
			r.mu.Unlock()
		}
		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

// nextOfPostgres reads a message: a type, except in the first, and the length of itself and the
// body.
func nextOfPostgres(from io.Reader, first bool) (message []byte, statement string, err error) {
	head := make([]byte, 5)
	if first {
		head = head[:4]
	}
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, "", err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[len(head)-4:])-4)
	_, err = io.ReadFull(from, body)
	switch {
	case first:
	case head[0] == 'Q':
		statement = string(bytes.TrimRight(body, "\x00"))
	case head[0] == 'P':
		_, text, _ := bytes.Cut(body, []byte{0}) // the name comes first
		text, _, _ = bytes.Cut(text, []byte{0})
		statement = string(text)
	}
	return append(head, body...), statement, err
}

// nextOfMariaDB reads a packet: a length, a number and the body. Commands have the number 0.
func nextOfMariaDB(from io.Reader, _ bool) (message []byte, statement string, err error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, "", err
	}
	body := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	_, err = io.ReadFull(from, body)
	const quit, query, ping = 1, 3, 14
	switch {
	case err != nil, head[3] != 0, body[0] == quit, body[0] == ping:
	case body[0] == query:
		statement = string(body[1:])
	default:
		statement = "another command than a query"
	}
	return append(head, body...), statement, err
}

// paced are parts of the statements that a process sends for all requests together, at its own
// pace: the trace, last uses, the queries for ended grants and another server secret, and what
// prepares or checks a connection.
var paced = []string{
	"attempts", "AS used", "SELECT id, ended_at", "revoked_at >=", "secret_witness",
	"show transaction_read_only", "SET default_transaction", "-- ping", "SET SESSION ", "SET NAMES ",
	"SET autocommit", "@@GLOBAL.read_only",
}

// Statements returns what act sends, but for paced ones and what begins and ends transactions.
func (r *Recorder) Statements(act func()) []string {
	GinkgoHelper()
	r.mu.Lock()
	r.statements = nil
	r.mu.Unlock()
	act()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.statements), func(statement string) bool {
		first, _, _ := strings.Cut(strings.ToLower(statement), " ")
		return slices.Contains([]string{"begin", "start", "commit"}, first) || // also of batches of the trace
			slices.ContainsFunc(paced, func(part string) bool { return strings.Contains(statement, part) })
	})
}

// budget is the largest number of statements for each operation.
type budget struct{ approve, exchange, refresh, call int }

var budgets = map[string]budget{
	"PostgreSQL": {
		approve:  4,
		exchange: 3,
		refresh:  2,
		call:     1,
	},
	"MariaDB": {
		approve:  4,
		exchange: 3,
		refresh:  2,
		call:     1,
	},
}

// expectAtMost accepts fewer too, because a grant that was read a moment ago is not read again.
func (r *Recorder) expectAtMost(statements int, doing string, act func()) {
	GinkgoHelper()
	sent := r.Statements(act)
	Expect(len(sent)).To(BeNumerically("<=", statements), "%s: %s", doing, strings.Join(sent, "\n"))
}

var _ = Describe("The statements to a database server", Label("engines", "N14"), func() {
	for name, budget := range budgets {
		Context("of "+name, func() {
			var database *Recorder
			var world *World
			var client *Client
			BeforeEach(func(ctx SpecContext) {
				database = NewRecorder(databaseServers[name].database())
				world = newWorld(func(c *service.Config) {
					c.MoreServers = []oauth.ProtectedServer{{Resource: notesElsewhere, Secret: notesSecret}}
				})
				world.Database = database.URL
				world.start("127.0.0.1:0")
				DeferCleanup(func() { world.Stop() })
				client = world.NewClient()
				client.Connect(ctx) // opens a connection, and keeps the client's document
			})

			It("are few for each operation", func(ctx SpecContext) {
				page := client.Consent(ctx)
				var approved, answer Response
				database.expectAtMost(budget.approve, "approve", func() { approved = page.Approve(ctx, world.Token) })
				form := client.Exchange(approved.Target().Query().Get("code"))
				database.expectAtMost(budget.exchange, "code for tokens", func() { answer = client.Token(ctx, form) })
				tokens := answer.Tokens()
				for _, call := range []string{"first call in a minute", "call"} {
					database.expectAtMost(budget.call, call, func() {
						Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
					})
				}
				database.expectAtMost(budget.refresh, "refresh", func() {
					answer = client.Token(ctx, client.Refresh(tokens.Refresh))
				})
				Expect(answer.StatusCode).To(Equal(http.StatusOK))
			}, NodeTimeout(time.Minute))

			It("are none for 100,000 made-up tokens", Label("D31", "soak", "flood"), func(ctx SpecContext) {
				tokens := client.Connect(ctx)
				sent := database.Statements(func() {
					for i := range 100_000 {
						made := fmt.Sprintf("%06d", i) // in place of some bytes of the secret
						access := tokens.Access[:40] + made + tokens.Access[46:]
						world.Present(client, access, tokens.Refresh[:40]+made+tokens.Refresh[46:])
					}
				})
				Expect(sent).To(BeEmpty())
				Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
				Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
			}, NodeTimeout(5*time.Minute))
		})
	}
})

const notesElsewhere, notesSecret = "https://elsewhere.example.com/mcp", "secret-of-32-characters-elsewhere"

// Present calls with one token, asks about it as an MCP server elsewhere, and refreshes with the
// other one, without a connection to the world. Both are made up.
func (w *World) Present(client *Client, access, refresh string) {
	GinkgoHelper()
	call := httptest.NewRequest(http.MethodPost, w.MCP(), strings.NewReader(listTools))
	call.Header.Set("Content-Type", "application/json")
	call.Header.Set("Authorization", "Bearer "+access)
	token := httptest.NewRequest(http.MethodPost, w.Issuer+"/oauth/token",
		strings.NewReader(client.Refresh(refresh).Encode()))
	token.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	question := httptest.NewRequest(http.MethodPost, w.Issuer+"/oauth/introspect",
		strings.NewReader(url.Values{"token": {access}}.Encode()))
	question.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	question.SetBasicAuth(url.QueryEscape(notesElsewhere), notesSecret)
	for request, refusals := range map[*http.Request][]int{call: {401, 429}, token: {400, 429}, question: {200}} {
		answer := httptest.NewRecorder()
		w.service.Echo.ServeHTTP(answer, request)
		Expect(answer.Code).To(BeElementOf(refusals), answer.Body.String())
	}
}

var _ = Describe("A grant on PostgreSQL", Label("engines", "N14"), func() {
	It("is one row after 1,000 refreshes, nearly all of which changed no index", func(ctx SpecContext) {
		// A transaction in any database of a server delays the removal of old rows.
		server, err := engines.Own(ctx, "PostgreSQL")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Close)
		world := newWorld()
		world.Database, err = server.Database(ctx)
		Expect(err).NotTo(HaveOccurred())
		world.start("127.0.0.1:0")
		DeferCleanup(func() { world.Stop() })
		client := world.NewClient()
		tokens := client.Connect(ctx)
		for range 1000 {
			answer := client.Token(ctx, client.Refresh(tokens.Refresh))
			Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
			tokens = answer.Tokens()
		}
		world.Stop() // a server process reports its counts when its connection ends
		connection, err := pgx.Connect(ctx, world.Database)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(connection.Close)
		var rows, bytes int
		size := connection.QueryRow(ctx, "SELECT count(*), max(pg_column_size(grants.*)) FROM grants")
		Expect(size.Scan(&rows, &bytes)).To(Succeed())
		Expect(rows).To(Equal(1))
		Expect(bytes).To(BeNumerically("<", 3<<10))
		hot := func() (share float64, err error) {
			err = connection.QueryRow(ctx, "SELECT n_tup_hot_upd::float / n_tup_upd FROM pg_stat_user_tables "+
				"WHERE relname = 'grants' AND n_tup_upd >= 1000").Scan(&share)
			return share, err
		}
		Eventually(hot).WithContext(ctx).WithTimeout(patience).Should(BeNumerically(">=", 0.9))
	}, NodeTimeout(5*time.Minute))
})
