package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pasteport/pasteport/bench/server"
)

const (
	seeded  = 1_000_000
	leaving = "leaving.example" // host of the client of one grant in a thousand
	spacing = 12_960            // milliseconds from one grant to the next: a million in 150 days
)

// grants is the table of grants in a database that a server uses at the same time.
type grants struct {
	*sql.Conn
	pool   *sql.DB
	file   string // "" on PostgreSQL
	id     string // SQL for the id of grant i: %d is the time of the first one, and %d the spacing
	print  string // SQL for the fingerprint of grant i
	series string // SQL for the numbers i from %d to %d
}

func openGrants(order server.Order) (g *grants, err error) {
	if order.Database != "" {
		g = &grants{
			id:     "lpad(to_hex(%d + i::bigint * %d), 12, '0') || lpad(to_hex(i), 20, '0')",
			print:  "decode(md5(i::text), 'hex')",
			series: "generate_series(%d, %d) AS n(i)",
		}
		g.pool, err = sql.Open("pgx", order.Database)
	} else {
		g = &grants{
			file:   filepath.Join(order.Dir, "oauth.db"),
			id:     "printf('%%012x%%020x', %d + i * %d, i)",
			print:  "randomblob(16)",
			series: "(WITH RECURSIVE n(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i FROM n)",
		}
		g.pool, err = sql.Open("sqlite", "file:"+g.file+"?_pragma=busy_timeout(60000)&_pragma=synchronous(NORMAL)")
	}
	if err != nil {
		return nil, err
	}
	g.Conn, err = g.pool.Conn(context.Background())
	return g, err
}

// Close closes the connection.
func (g *grants) Close() error { return errors.Join(g.Conn.Close(), g.pool.Close()) }

func (g *grants) run(statement string, values ...any) error {
	if _, err := g.ExecContext(context.Background(), statement, values...); err != nil {
		return fmt.Errorf("%.80s: %w", statement, err)
	}
	return nil
}

func (g *grants) find(query string, into ...any) error {
	return g.QueryRowContext(context.Background(), query).Scan(into...)
}

// seed writes a million copies of the fresh grant, each of another person and with an id that
// begins with its time. It then gives them the tokens of the refreshed grant. Each statement writes
// a part of them.
func (g *grants) seed(fresh, refreshed string) error {
	for table, id := range map[string]string{"fresh": fresh, "refreshed": refreshed} {
		if err := g.run("CREATE TEMP TABLE " + table + " AS SELECT * FROM grants WHERE id = '" + id + "'"); err != nil {
			return err
		}
	}
	columns, err := g.columns()
	if err != nil {
		return err
	}
	start := time.Now().UnixMilli() - seeded*spacing
	values := map[string]string{
		"id":           fmt.Sprintf(g.id, start, spacing),
		"created_at":   fmt.Sprintf("%d + CAST(i AS bigint) * %d", start, spacing),
		"subject":      "'person-' || i",
		"host_print":   g.print,
		"forget_after": "forget_after + CAST(i % 30 AS bigint) * 86400000",
		"client_id":    "CASE WHEN i % 1000 = 0 THEN 'https://" + leaving + "/client.json' ELSE client_id END",
	}
	var selected []string
	for _, column := range columns {
		if value, has := values[column]; has {
			column = value
		}
		selected = append(selected, column)
	}
	insert := "INSERT INTO grants (" + strings.Join(columns, ", ") + ") SELECT " +
		strings.Join(selected, ", ") + " FROM fresh, "
	for first := 1; first < seeded && err == nil; first += seeded / 20 {
		err = g.run(insert + fmt.Sprintf(g.series, first, first+seeded/20-1))
	}
	for _, digit := range "0123456789abcdef" {
		err = errors.Join(err,
			g.run(`UPDATE grants SET version = r.version, verified_at = r.verified_at, idle_end = r.idle_end,
			generation = r.generation, refresh_digest = r.refresh_digest, rotations = r.rotations,
			issued_access = r.issued_access, access_tokens = r.access_tokens, host_wrap = r.host_wrap
			FROM refreshed r WHERE substr(grants.id, 32) = '`+
				string(digit)+`'`))
	}
	return errors.Join(err, g.settle())
}

func (g *grants) columns() ([]string, error) {
	rows, err := g.QueryContext(context.Background(), "SELECT * FROM fresh")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	return rows.Columns()
}

// settle does at once what a database does by itself in time.
func (g *grants) settle() error {
	if g.file != "" {
		var busy, all, done int
		return g.find("PRAGMA wal_checkpoint(TRUNCATE)", &busy, &all, &done)
	}
	return g.run("VACUUM ANALYZE grants")
}

// sizes returns the size of the database, and describes those of the table and its indexes.
func (g *grants) sizes() (all float64, described string, err error) {
	if g.file != "" {
		stat, err := os.Stat(g.file)
		if err != nil {
			return 0, "", err
		}
		return float64(stat.Size()), "", nil
	}
	err = g.find(`SELECT pg_database_size(current_database()), 'table ' || pg_table_size('grants') / 1e9 ||
		(SELECT string_agg(', ' || indexrelname || ' ' || pg_relation_size(indexrelid) / 1e9, '')
			FROM pg_stat_user_indexes WHERE relname = 'grants')`,
		&all, &described)
	return all, described, err
}

// row returns the size of a grant, and the number of its rows.
func (g *grants) row(id string) (size, rows int, err error) {
	length := "pg_column_size(grants.*)"
	if g.file != "" {
		length = `length(id) + length(client_id) + length(client_name) + length(redirect_uri)
			+ length(resource) + length(scopes) + length(subject) + 12 * 6 + length(refresh_digest)
			+ length(rotations) + length(access_tokens)
			+ length(host_print) + length(host_box) + length(host_wrap)`
	}
	err = g.find("SELECT sum("+length+"), count(*) FROM grants WHERE id = '"+id+"'", &size, &rows)
	return size, rows, err
}

// expire makes the oldest grants expire.
func (g *grants) expire(number int) error {
	id := fmt.Sprintf("(SELECT id FROM grants ORDER BY id LIMIT 1 OFFSET %d)", number)
	return g.run("UPDATE grants SET forget_after = 1 WHERE id < " + id)
}

// counters are PostgreSQL's counts of what statements did to the table.
type counters struct{ scans, updates, hot int }

func (g *grants) counters() (c counters, err error) {
	if g.file != "" {
		return c, nil
	}
	time.Sleep(1500 * time.Millisecond) // a session reports at most once a second
	if err := g.run("SELECT pg_stat_clear_snapshot()"); err != nil {
		return c, err
	}
	err = g.find("SELECT seq_scan, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'grants'",
		&c.scans, &c.updates, &c.hot)
	return c, err
}

func (c counters) since(before counters) string {
	if c == before {
		return ""
	}
	return fmt.Sprintf(" %d scans of the table; %d updates, %d of them HOT",
		c.scans-before.scans, c.updates-before.updates, c.hot-before.hot)
}
