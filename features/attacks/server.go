package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pasteport/pasteport/features/engines"
)

// site is the built binary, as one process or as replicas, on an empty store.
type site struct {
	issuer   string
	binary   string
	storage  []string // flags that name the store
	replicas []*replica
	drop     func() error
}

// replica is one process.
type replica struct {
	address, admin string
	command        *exec.Cmd
	log            *os.File
}

const startLimit = 30 * time.Second

// startSite starts all replicas with the settings, in an empty folder of dir.
func startSite(ctx context.Context, o options, on *store, dir, certificates string, settings []string) (s *site,
	err error) {
	folder, err := os.MkdirTemp(dir, "site-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the site: %w", err)
	}
	s = &site{binary: o.pasteport, storage: []string{"--data", folder}}
	var database string
	if database, s.drop, err = on.database(ctx); err != nil {
		return nil, err
	}
	if database != "" {
		s.storage = append(s.storage, "--database", database)
	}
	for range on.replicas {
		r, err := s.add(folder, certificates, settings)
		if err != nil {
			return nil, errors.Join(err, s.stop())
		}
		s.replicas = append(s.replicas, r)
	}
	return s, nil
}

// add starts a replica. The first one's address is the issuer's.
func (s *site) add(folder, certificates string, settings []string) (r *replica, err error) {
	r = &replica{}
	if r.address, err = freeAddress(); err != nil {
		return nil, err
	}
	if r.admin, err = freeAddress(); err != nil {
		return nil, err
	}
	if s.issuer == "" {
		s.issuer = "http://" + r.address
	}
	if r.log, err = os.Create(filepath.Join(folder, "log-"+strconv.Itoa(len(s.replicas)))); err != nil {
		return nil, err
	}
	arguments := append([]string{"serve", "--dev", "--issuer", s.issuer, "--addr", r.address, "--admin-addr", r.admin,
		"--advertise", "http://" + r.address, "--trusted-proxies", "127.0.0.1", "--log-level", "error"}, s.storage...)
	r.command = exec.Command(s.binary, append(arguments, settings...)...)
	r.command.Env = append(os.Environ(), "SSL_CERT_FILE="+certificates)
	r.command.Stderr = r.log
	r.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return r, r.start()
}

// start returns when the process serves.
func (r *replica) start() error {
	out, err := r.command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := r.command.Start(); err != nil {
		return fmt.Errorf("starting pasteport: %w", err)
	}
	serving := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "serving ") {
				serving <- true
			}
		}
		serving <- false
	}()
	select {
	case up := <-serving:
		if up {
			return nil
		}
	case <-time.After(startLimit):
	}
	return errors.Join(fmt.Errorf("pasteport does not serve: %s", r.lastLog()), r.stop())
}

// lastLog returns the end of the log.
func (r *replica) lastLog() string {
	text, _ := os.ReadFile(r.log.Name())
	return string(text[max(0, len(text)-2000):])
}

func (r *replica) stop() error {
	if r.command.ProcessState != nil {
		return nil
	}
	err := r.command.Process.Kill() // its folder is removed, so nothing needs to be written
	_ = r.command.Wait()
	return errors.Join(err, r.log.Close())
}

func (s *site) stop() (err error) {
	for _, r := range s.replicas {
		err = errors.Join(err, r.stop())
	}
	return errors.Join(err, s.drop())
}

// command runs another command of the binary on the site's store.
func (s *site) command(ctx context.Context, words ...string) error {
	output, err := exec.CommandContext(ctx, s.binary, append(words, s.storage...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("running %v: %w: %s", words, err, output[max(0, len(output)-500):])
	}
	return nil
}

// Kinds of memory in /proc.
const (
	resident = "VmRSS:"
	peak     = "VmHWM:"
)

// memory returns the memory of the largest replica in MiB.
func (s *site) memory(kind string) (largest float64, err error) {
	for _, r := range s.replicas {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.command.Process.Pid))
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(string(text), kind)
		var kib float64
		if _, err := fmt.Sscan(rest, &kib); err != nil {
			return 0, fmt.Errorf("reading %s of a replica: %w", kind, err)
		}
		largest = max(largest, kib/1024)
	}
	return largest, nil
}

var limitLine = regexp.MustCompile(`(?m)^pasteport_limits_total\{(.*)\} (\S+)$`)
var label = regexp.MustCompile(`(\w+)="(\w+)"`)

// limits returns pasteport_limits_total by limit and effect, summed over all replicas.
func (s *site) limits(ctx context.Context) (map[string]float64, error) {
	all := map[string]float64{}
	for _, r := range s.replicas {
		text, err := get(ctx, "http://"+r.admin+"/metrics")
		if err != nil {
			return nil, fmt.Errorf("reading metrics: %w", err)
		}
		for _, line := range limitLine.FindAllStringSubmatch(text, -1) {
			labels := map[string]string{}
			for _, pair := range label.FindAllStringSubmatch(line[1], -1) {
				labels[pair[1]] = pair[2]
			}
			value, err := strconv.ParseFloat(line[2], 64)
			if err != nil {
				return nil, fmt.Errorf("reading metrics: %w", err)
			}
			all[labels["limit"]+" "+labels["effect"]] += value
		}
	}
	return all, nil
}

func get(ctx context.Context, target string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

func freeAddress() (string, error) {
	port, err := engines.FreePort()
	return fmt.Sprintf("127.0.0.1:%d", port), err
}
