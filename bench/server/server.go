// Package server is what the benchmarks compare: each server runs in a process of its own, says where it listens, and ends with its standard input.
package server

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"time"
)

// Order is the first line that a server reads.
type Order struct {
	Dir      string // a folder of its own
	Database string // URL of a database of its own, "" for a file in Dir
	Client   string // client_id, the address of a metadata document
	Roots    []byte // whose certificates that address has, as PEM
}

// Greeting is the only line that a server writes without being asked.
type Greeting struct {
	URL string
}

// What a server may be told, a line each. It answers each with an empty line when it is done.
const (
	Settle  = "settle"   // give back what memory is free
	Profile = "profile " // and a path: note where the time goes until the end
)

// site is what a server is before it listens.
type site struct {
	handler http.Handler
	close   func() error
}

// open builds a server that will be reached at address.
type open func(order Order, address string) (site, error)

func still() error { return nil }

var servers = map[string]open{
	"echo":             bareEcho,
	"echo-site":        siteEcho,
	"pasteport":        pasteport{site: true}.open,
	"pasteport-bare":   pasteport{}.open,
	"pasteport-server": pasteport{site: true}.open,
	"pasteport-tools":  pasteport{tools: true}.open,
	"sdk":              sdkAlone,
}

// Serve runs one server until in ends.
func Serve(name string, in io.Reader, out io.Writer) error {
	build, known := servers[name]
	if !known {
		return fmt.Errorf("there is no server %q", name)
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	var order Order
	if !lines.Scan() {
		return errors.New("nothing was ordered")
	}
	if err := json.Unmarshal(lines.Bytes(), &order); err != nil {
		return fmt.Errorf("reading the order: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := "http://" + listener.Addr().String()
	built, err := build(order, address)
	if err != nil {
		return fmt.Errorf("building %s: %w", name, err)
	}
	server := &http.Server{Handler: built.handler, ReadHeaderTimeout: time.Minute}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "serving has ended:", err)
		}
	}()
	if err := json.NewEncoder(out).Encode(Greeting{URL: address}); err != nil {
		return err
	}
	return errors.Join(obey(lines, out), server.Close(), built.close())
}

// obey does what it is told until nobody is there any more.
func obey(lines *bufio.Scanner, out io.Writer) (err error) {
	stop := still
	for lines.Scan() && err == nil {
		word := lines.Text()
		switch {
		case word == Settle:
			debug.FreeOSMemory()
		case len(word) > len(Profile) && word[:len(Profile)] == Profile:
			stop, err = startProfile(word[len(Profile):])
		}
		_, wrong := fmt.Fprintln(out)
		err = errors.Join(err, wrong)
	}
	return errors.Join(err, stop())
}

// startProfile notes where the time goes, and at its end what was allocated and what is kept.
func startProfile(path string) (stop func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return still, err
	}
	times, err := os.Create(path + ".cpu")
	if err != nil {
		return still, err
	}
	if err := pprof.StartCPUProfile(times); err != nil {
		return still, err
	}
	return func() error {
		pprof.StopCPUProfile()
		runtime.GC()
		heap, err := os.Create(path + ".heap")
		if err != nil {
			return err
		}
		return errors.Join(times.Close(), pprof.Lookup("allocs").WriteTo(heap, 0), heap.Close())
	}, nil
}
