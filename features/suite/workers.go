package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
)

// folderVariable holds the folder of the package for workers, because Ginkgo starts them in the
// folder of the test binary.
const folderVariable = "SPECS_FOLDER"

// faultsVariable holds a folder for the crash reports of workers.
const faultsVariable = "SPECS_FAULTS"

// margin is the time between Ginkgo's timeout and that of go test. In it, Ginkgo interrupts specs,
// waits 30 seconds for them, and reports them.
const margin = 45 * time.Second

// The imported init runs before the variables of the package under test are initialized, which may
// read files of its folder.
func init() {
	folder, isWorker := os.LookupEnv(folderVariable)
	if !isWorker {
		return
	}
	crash, err := os.Create(filepath.Join(os.Getenv(faultsVariable), fmt.Sprintf("crash.%d", os.Getpid())))
	if err = errors.Join(err, os.Chdir(folder)); err != nil {
		panic(err)
	}
	if err := debug.SetCrashOutput(crash, debug.CrashOptions{}); err != nil { // it duplicates the file
		panic(err)
	}
	_ = crash.Close()
	_ = os.Unsetenv(folderVariable) // programs that specs start are not workers
}

// isWorker reports whether Ginkgo has started this process.
func isWorker() bool {
	suite, _ := ginkgo.GinkgoConfiguration()
	return suite.ParallelTotal > 1
}

// Specs wait more than they compute, so several processes share a processor; more than 8 browsers
// and databases do not make a run faster.
const (
	processesPerCPU = 3
	maxProcesses    = 8
)

// runWorkers runs this test binary in n processes with the Ginkgo command.
func runWorkers(t *testing.T, n int) {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatalf("finding the package's folder: %v", err)
	}
	ginkgo, err := exec.Command("go", "tool", "-n", "ginkgo").Output()
	if err != nil {
		t.Fatalf("building the Ginkgo command: %v", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	faults := t.TempDir()
	command := exec.CommandContext(ctx, strings.TrimSpace(string(ginkgo)),
		append([]string{"run"}, arguments(t, n)...)...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = margin
	command.Env = append(os.Environ(), folderVariable+"="+folder, faultsVariable+"="+faults,
		"GORACE="+strings.TrimSpace(os.Getenv("GORACE")+" log_path="+filepath.Join(faults, "race")))
	var report bytes.Buffer
	command.Stdout = &report
	if testing.Verbose() {
		command.Stdout = io.MultiWriter(os.Stdout, &report)
	}
	command.Stderr = command.Stdout
	err = command.Run()
	ran := summary.Find(report.Bytes())
	if !testing.Verbose() {
		fmt.Print(string(ran))
	}
	if err != nil || ran == nil {
		t.Errorf("running the specs in %d processes: %v\n%s", n, err, progress.ReplaceAll(report.Bytes(), nil))
	}
	reportFaults(t, faults)
}

// summary is Ginkgo's last line. It is missing if a worker has exited early.
var summary = regexp.MustCompile(`(?m)^Ran \d+ of \d+ Specs.*\n`)

// progress matches the characters that Ginkgo prints for passed and skipped specs.
var progress = regexp.MustCompile(`(?m)^[•S]*•[•S]*`)

// arguments returns the arguments of "ginkgo run": the Ginkgo flags of this process, and the test
// binary.
func arguments(t *testing.T, n int) []string {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatalf("finding the test binary: %v", err)
	}
	given := []string{fmt.Sprintf("--procs=%d", n), "--no-color"}
	if testing.Verbose() {
		given = append(given, "-v")
	}
	if deadline, limited := t.Deadline(); limited {
		// Before the given flags, so that a given timeout wins.
		given = append(given, "--timeout="+max(time.Until(deadline)-margin, time.Second).String())
	}
	for _, argument := range os.Args[1:] {
		if !strings.HasPrefix(argument, "-test.") {
			given = append(given, strings.Replace(argument, "-ginkgo.", "-", 1))
		}
	}
	return append(given, binary, "--", "-test.paniconexit0", "-test.run=^"+regexp.QuoteMeta(t.Name())+"$")
}

// reportFaults fails the test with the reports of the race detector and the stacks of crashed
// workers.
func reportFaults(t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatalf("finding the faults of workers: %v", err)
	}
	for _, file := range files {
		report, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("reading the faults of a worker: %v", err)
		}
		if len(report) > 0 {
			t.Errorf("a fault of a worker:\n%s", report)
		}
	}
}
