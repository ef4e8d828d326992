package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pasteport/pasteport/bench/server"
)

// process is one running server that only this benchmark uses.
type process struct {
	command *exec.Cmd
	orders  io.WriteCloser
	answers *bufio.Reader
	began   time.Time
	site    *url.URL
	dir     string
	order   server.Order
	drop    func() error // drops its database
}

// start runs a server with a new folder and, if it needs one, a new database.
func (b *bench) start(name string) (*process, error) {
	dir, err := os.MkdirTemp("", "pasteport-bench-")
	if err != nil {
		return nil, err
	}
	p := &process{dir: dir, drop: func() error { return nil }}
	order := server.Order{Dir: dir, Client: b.clientID, Roots: b.roots}
	command, kind, err := b.command(name)
	if err != nil {
		return nil, errors.Join(err, p.clean())
	}
	if kind != "" {
		if order.Database, p.drop, err = createDatabase(kind); err != nil {
			return nil, errors.Join(err, p.clean())
		}
	}
	p.order = order
	if err := p.run(b.serverCPU, command, order); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", name, err), p.clean())
	}
	return p, nil
}

func (p *process) run(cpu int, command *exec.Cmd, order server.Order) (err error) {
	p.command, command.Stderr = command, os.Stderr
	if p.orders, err = command.StdinPipe(); err != nil {
		return err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	p.answers, p.began = bufio.NewReader(out), time.Now()
	if err := on(cpu, command.Start); err != nil {
		return err
	}
	if err := json.NewEncoder(p.orders).Encode(order); err != nil {
		return errors.Join(err, p.end())
	}
	var greeting server.Greeting
	line, err := p.answers.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &greeting)
	}
	if err == nil {
		p.site, err = url.Parse(greeting.URL + "/")
	}
	if err != nil {
		return errors.Join(fmt.Errorf("reading its greeting: %w", err), p.end())
	}
	return nil
}

// tell sends a command and waits until the server has carried it out.
func (p *process) tell(word string) error {
	if _, err := io.WriteString(p.orders, word+"\n"); err != nil {
		return err
	}
	_, err := p.answers.ReadBytes('\n')
	return err
}

func (p *process) end() error { return errors.Join(p.orders.Close(), p.command.Wait()) }

func (p *process) clean() error { return errors.Join(p.drop(), os.RemoveAll(p.dir)) }

// stop ends the server and removes its folder and database.
func (p *process) stop() error { return errors.Join(p.end(), p.clean()) }

// cpu returns the CPU time of all threads of the server and of its child processes so far.
func (p *process) cpu() time.Duration { return cpuOf(strconv.Itoa(p.command.Process.Pid)) }

func cpuOf(process string) (all time.Duration) {
	threads, _ := filepath.Glob("/proc/" + process + "/task/*")
	for _, thread := range threads {
		text, _ := os.ReadFile(filepath.Join(thread, "schedstat")) // a thread may have ended
		used, _, _ := strings.Cut(string(text), " ")
		nanoseconds, _ := strconv.ParseInt(used, 10, 64)
		all += time.Duration(nanoseconds)
		children, _ := os.ReadFile(filepath.Join(thread, "children"))
		for _, child := range strings.Fields(string(children)) {
			all += cpuOf(child)
		}
	}
	return all
}

// Fields of /proc/PID/status.
const (
	resident = "VmRSS:"
	ofFiles  = "RssFile:"
)

// memory returns one kind of the server's memory in bytes.
func (p *process) memory(kind string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), kind)
	var kib float64
	_, err = fmt.Sscan(rest, &kib)
	return kib * 1024, err
}

// disk returns the size of the server's folder in bytes.
func (p *process) disk() (size float64, err error) {
	files, err := filepath.Glob(filepath.Join(p.dir, "*"))
	for _, file := range files {
		if stat, err := os.Stat(file); err == nil {
			size += float64(stat.Size())
		}
	}
	return size, err
}
