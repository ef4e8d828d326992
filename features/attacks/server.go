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
	"strings"
	"syscall"
	"time"

	"github.com/pasteport/pasteport/features/engines"
)

// site is the built binary on an empty store.
type site struct {
	issuer         string
	binary         string
	data           string // folder
	address, admin string
	process        *exec.Cmd
	log            *os.File
}

const startLimit = 30 * time.Second

// startSite starts the binary with the settings, in an empty folder of dir.
func startSite(binary, dir, certificates string, settings []string) (s *site, err error) {
	s = &site{binary: binary}
	if s.data, err = os.MkdirTemp(dir, "site-"); err != nil {
		return nil, fmt.Errorf("making a folder for the site: %w", err)
	}
	if s.address, err = freeAddress(); err != nil {
		return nil, err
	}
	if s.admin, err = freeAddress(); err != nil {
		return nil, err
	}
	s.issuer = "http://" + s.address
	if s.log, err = os.Create(filepath.Join(s.data, "log")); err != nil {
		return nil, err
	}
	arguments := append([]string{"serve", "--dev", "--issuer", s.issuer, "--addr", s.address, "--admin-addr", s.admin,
		"--trusted-proxies", "127.0.0.1", "--log-level", "error", "--data", s.data}, settings...)
	s.process = exec.Command(binary, arguments...)
	s.process.Env = append(os.Environ(), "SSL_CERT_FILE="+certificates)
	s.process.Stderr = s.log
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return s, s.start()
}

// start returns when the process serves.
func (s *site) start() error {
	out, err := s.process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.process.Start(); err != nil {
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
	return errors.Join(fmt.Errorf("pasteport does not serve: %s", s.lastLog()), s.stop())
}

// lastLog returns the end of the log.
func (s *site) lastLog() string {
	text, _ := os.ReadFile(s.log.Name())
	return string(text[max(0, len(text)-2000):])
}

func (s *site) stop() error {
	if s.process.ProcessState != nil {
		return nil
	}
	err := s.process.Process.Kill() // its folder is removed, so nothing needs to be written
	_ = s.process.Wait()
	return errors.Join(err, s.log.Close())
}

// command runs another command of the binary on the site's store.
func (s *site) command(ctx context.Context, words ...string) error {
	output, err := exec.CommandContext(ctx, s.binary, append(words, "--data", s.data)...).CombinedOutput()
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

// memory returns the memory of the process in MiB.
func (s *site) memory(kind string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), kind)
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		return 0, fmt.Errorf("reading %s of the process: %w", kind, err)
	}
	return kib / 1024, nil
}

var limitLine = regexp.MustCompile(`(?m)^pasteport_limits_total\{effect="(\w+)",limit="(\w+)"\} ([1-9]\S*)$`)

// limits returns the counts of pasteport_limits_total as text.
func (s *site) limits(ctx context.Context) (string, error) {
	text, err := get(ctx, "http://"+s.admin+"/metrics")
	if err != nil {
		return "", fmt.Errorf("reading metrics: %w", err)
	}
	var all []string
	for _, line := range limitLine.FindAllStringSubmatch(text, -1) {
		all = append(all, line[2]+" "+line[1]+" "+line[3])
	}
	return strings.Join(all, ", "), nil
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
