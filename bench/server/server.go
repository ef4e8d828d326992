// Package server is the frame of the benchmarked programs: each runs one server in its own process,
// prints its address and stops at the end of its standard input.
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
	Dir      string // folder for this server only
	Database string // URL of a database for this server only; "" for a file in Dir
	Client   string // client_id, the URL of a metadata document
	Roots    []byte // root certificates of that URL, as PEM
}

// Greeting is the first line that a server writes.
type Greeting struct {
	URL string
}

// Commands, one per line. The server writes an empty line after each.
const (
	Settle  = "settle"   // return free memory to the system
	Profile = "profile " // followed by a path: write profiles of the time until the end
)

// Site is a server before it listens.
type Site struct {
	Handler http.Handler
	Close   func() error
}

// Open builds a server for this address.
type Open func(order Order, address string) (Site, error)

// Still is the Close of a server without resources.
func Still() error { return nil }

// Main runs the server named on the command line.
func Main(servers map[string]Open) {
	if len(os.Args) != 2 || servers[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "name one of the servers:", slices.Sorted(maps.Keys(servers)))
		os.Exit(2)
	}
	runtime.MemProfileRate = 0 // the samples would count as memory of the server
	// On one CPU, a blocking read can delay other goroutines by up to 10 ms.
	err := syscall.SetNonblock(syscall.Stdin, true)
	if err == nil {
		err = serve(servers[os.Args[1]], os.NewFile(uintptr(syscall.Stdin), "orders"), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve runs a server until the end of in.
func serve(open Open, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	var order Order
	if !lines.Scan() {
		return errors.New("no order on the standard input")
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

// obey runs commands until the end of the input.
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

const profileRate = 512 << 10 // bytes per sampled allocation, Go's default

// startProfile starts a CPU profile; stop ends it and writes a heap profile.
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
