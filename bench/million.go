package main

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pasteport/pasteport/adapters/persistence"
	_ "github.com/pasteport/pasteport/adapters/persistence/postgres" // the store of onPostgres
	"github.com/pasteport/pasteport/bench/load"
)

// manyGrants measures a server whose store has a million grants, each refreshed once.
func manyGrants(b *bench, _ line, name string) (s sample, err error) {
	p, err := b.start(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	m := &million{bench: b, server: name, process: p}
	if m.grants, err = openGrants(p.order); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.grants.Close()) }()
	for _, step := range []func() error{m.seed, m.restart, m.underLoad, m.refreshOne, m.page, m.list, m.end,
		m.store, m.memory} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return sample{databaseSize: m.size / 1e9}, nil
}

type million struct {
	*bench
	server  string
	process *process
	grants  *grants
	people  []*person
	size    float64
}

// print prints a result.
func (m *million) print(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "a million grants, %s: %s\n", m.server, fmt.Sprintf(format, values...))
}

func (m *million) connect(count int) (err error) {
	if m.people, err = m.gather(m.process, m.server, count); err != nil {
		return err
	}
	return together(m.people, (*person).flow)
}

// seed copies a new grant a million times and a refreshed one over the copies.
func (m *million) seed() error {
	if err := m.connect(2); err != nil {
		return err
	}
	defer dismiss(m.people)
	if err := m.people[1].refresh(); err != nil {
		return err
	}
	began := time.Now()
	if err := m.grants.seed(grantOf(m.people[0]), grantOf(m.people[1])); err != nil {
		return fmt.Errorf("seeding: %w", err)
	}
	size, table, err := m.grants.sizes()
	m.size = size
	m.print("seeded in %.0f s; database %.3f GB, %s", time.Since(began).Seconds(), size/1e9, table)
	return err
}

// grantOf returns the id of the grant that a token names.
func grantOf(p *person) string {
	content, _ := base64.RawURLEncoding.DecodeString(p.Tokens.Access[len("ppa_"):])
	return hex.EncodeToString(content[:16])
}

func (m *million) restart() error {
	if err := m.process.end(); err != nil {
		return err
	}
	command, _, err := m.command(m.server)
	if err == nil {
		err = m.process.run(m.serverCPU, command, m.process.order)
	}
	if err == nil {
		m.print("start %s", time.Since(m.process.began))
		err = m.connect(clients)
	}
	return err
}

// underLoad measures the lines' scenarios.
func (m *million) underLoad() error {
	for _, name := range []string{"guard", "refresh", "flow"} {
		before, err := m.grants.counters()
		if err != nil {
			return err
		}
		if prepare := scenarios[name].prepare; prepare != nil {
			if err := together(m.people, prepare); err != nil {
				return err
			}
		}
		c := &contestant{server: m.server, process: m.process, people: m.people}
		if err := c.take(line{scenario: name}, turn{length: m.length, counts: true}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		after, err := m.grants.counters()
		if err != nil {
			return err
		}
		m.print("%s %s%s", name, c.shown(), after.since(before))
	}
	return nil
}

// refreshOne refreshes one grant a thousand times.
func (m *million) refreshOne() error {
	one := m.people[0]
	if err := errors.Join(one.flow(), one.refresh()); err != nil {
		return err
	}
	first, _, err := m.grants.row(grantOf(one))
	for i := 1; i < 1000 && err == nil; i++ {
		err = one.refresh()
	}
	if err != nil {
		return err
	}
	last, rows, err := m.grants.row(grantOf(one))
	m.print("a grant after one refresh %d bytes, after 1000 %d bytes in %d row", first, last, rows)
	return err
}

// page shows the connections page of the person who pasted the last token.
func (m *million) page() error {
	form := url.Values{"decision": {"show"}, "bearer_token": {load.LastHostToken()}}.Encode()
	request := load.Request(http.MethodPost, m.process.site.JoinPath("/oauth/connections"), load.Form, form,
		"Accept: text/html")
	began := time.Now()
	answer, err := m.people[0].Do(request)
	m.print("connections page %d in %s, lists a client: %t",
		answer.Status, time.Since(began), strings.Contains(string(answer.Body), "Bench"))
	return err
}

func (m *million) list() error {
	return errors.Join(m.run("list"), m.run("list", "--json"), m.run("list", "--client", leaving))
}

// end ends the grants of one client in a thousand.
func (m *million) end() error { return m.run("end", "--client", leaving, "--yes") }

// run runs a command for grants in a process of its own.
func (m *million) run(arguments ...string) error {
	program, err := m.operatorsProgram()
	if err != nil {
		return err
	}
	flags := []string{"--data", m.process.dir}
	if m.process.order.Database != "" {
		flags = []string{"--database", m.process.order.Database, "--server-secret",
			filepath.Join(m.process.dir, "secret")}
	}
	command := exec.Command(program, append(append([]string{"grants"}, arguments...), flags...)...)
	var printed lastLine
	command.Stdout = &printed
	began := time.Now()
	if err := command.Run(); err != nil {
		return fmt.Errorf("grants %v: %w", arguments, err)
	}
	used := command.ProcessState.SysUsage().(*syscall.Rusage)
	m.print("grants %s: %.2f s, at most %d MiB, %d lines, the last %q",
		strings.Join(arguments, " "), time.Since(began).Seconds(),
		used.Maxrss>>10, printed.lines, printed.text)
	return nil
}

// operatorsProgram builds the program of the operator's commands.
func (m *million) operatorsProgram() (string, error) {
	program := m.program("operator")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if text, err := exec.Command("go",
		"-C", "..", "build", "-o", program, "./bootstrap/cmd/pasteport").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the operator's program: %w: %s", err, text)
	}
	return program, nil
}

// lastLine keeps the last line that was written.
type lastLine struct {
	lines int
	text  string
}

func (l *lastLine) Write(text []byte) (int, error) {
	l.lines += strings.Count(string(text), "\n")
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	l.text = fmt.Sprintf("%.60s", lines[len(lines)-1])
	return len(text), nil
}

// store measures the background work of a replica.
func (m *million) store() error {
	open := func() (*persistence.Store, error) {
		return persistence.OpenSQLite(filepath.Join(m.process.dir, "oauth.db"))
	}
	if order := m.process.order; order.Database != "" {
		open = func() (*persistence.Store, error) {
			return persistence.OpenServer(order.Database,
				persistence.ServerOptions{SecretFile: filepath.Join(order.Dir, "secret")})
		}
	}
	store, err := open()
	if err != nil {
		return err
	}
	before, err := m.grants.counters()
	began := time.Now()
	ended, failed := store.EndedSince(context.Background(), began.Add(-time.Minute))
	m.print("watcher: %d ended grants of the last minute in %s", len(ended.Grants), time.Since(began))
	err = errors.Join(err, failed)
	for _, expired := range []int{0, 10_000} {
		if expired > 0 {
			err = errors.Join(err, m.grants.expire(expired))
		}
		began := time.Now()
		deleted, failed := store.DeleteExpired(context.Background(), began)
		m.print("sweep: %d rows in %s", deleted, time.Since(began))
		err = errors.Join(err, failed)
	}
	after, failed := m.grants.counters()
	m.print("watcher and sweeps:%s", after.since(before))
	return errors.Join(err, failed, store.Close())
}

func (m *million) memory() error {
	now, err := m.process.memory(resident)
	most, failed := m.process.memory("VmHWM:")
	m.print("memory of the server %.0f MiB, at most %.0f MiB", now/mebibyte, most/mebibyte)
	dismiss(m.people)
	return errors.Join(err, failed)
}
