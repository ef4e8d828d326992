// Package server is what the programs below it have in common: each is one server, or one kind of server, in a process of its own, which says
// where it listens and ends with its standard input.
package server

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"syscall"
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

// Site is what a server is before it listens.
type Site struct {
	Handler http.Handler
	Close   func() error
}

// Open builds a server that will be reached at address.
type Open func(order Order, address string) (Site, error)

// Still is the end of a server that has nothing to end.
func Still() error { return nil }

// Main runs the server that the command line names.
func Main(servers map[string]Open) {
	if len(os.Args) != 2 || servers[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "name one of the servers:", slices.Sorted(maps.Keys(servers)))
		os.Exit(2)
	}
	runtime.MemProfileRate = 0                      // nobody has asked yet, and what it keeps would be measured
	err := syscall.SetNonblock(syscall.Stdin, true) // on one CPU, a read that blocks keeps others from it for up to 10 ms
	if err == nil {
		err = serve(servers[os.Args[1]], os.NewFile(uintptr(syscall.Stdin), "orders"), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve runs a server until in ends.
func serve(open Open, in io.Reader, out io.Writer) error {
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
	built, err := open(order, address)
	if err != nil {
		return fmt.Errorf("building the server: %w", err)
	}
	server := &http.Server{Handler: built.Handler, ReadHeaderTimeout: time.Minute}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "serving has ended:", err)
		}
	}()
	if err := json.NewEncoder(out).Encode(Greeting{URL: address}); err != nil {
		return err
	}
	return errors.Join(obey(lines, out), server.Close(), built.Close())
}

// obey does what it is told until nobody is there any more.
func obey(lines *bufio.Scanner, out io.Writer) (err error) {
	stop := Still
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

const profileRate = 512 << 10 // bytes for each allocation that is noted, as Go does by itself

// startProfile notes where the time goes, and at its end what was allocated since and what is kept of it.
func startProfile(path string) (stop func() error, err error) {
	runtime.MemProfileRate = profileRate
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return Still, err
	}
	times, err := os.Create(path + ".cpu")
	if err != nil {
		return Still, err
	}
	if err := pprof.StartCPUProfile(times); err != nil {
		return Still, err
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
