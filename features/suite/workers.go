package suite

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
)

// folderVariable tells a worker the package's folder. Ginkgo starts workers in the folder of the test binary.
const folderVariable = "SPECS_FOLDER"

// margin is the time between Ginkgo's own limit and that of go test, so that Ginkgo reports what took too long.
const margin = 20 * time.Second

// A worker changes to the folder before the variables of the package are initialized, which may read files.
func init() {
	if folder, set := os.LookupEnv(folderVariable); set {
		if err := os.Chdir(folder); err != nil {
			panic(err)
		}
		_ = os.Unsetenv(folderVariable) // programs that specs start are no workers
	}
}

// isWorker reports whether Ginkgo has started this process.
func isWorker() bool {
	suite, _ := ginkgo.GinkgoConfiguration()
	return suite.ParallelTotal > 1
}

// maxProcesses keeps machines with many processors from starting more browsers and databases than pay off.
const maxProcesses = 8

func severalPerProcessor() int { return min(3*runtime.GOMAXPROCS(0), maxProcesses) }

// runWorkers lets the Ginkgo command run this test binary in n processes.
func runWorkers(t *testing.T, n int) {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatalf("finding the package's folder: %v", err)
	}
	races := filepath.Join(t.TempDir(), "race")
	command := exec.Command("go", append([]string{"tool", "ginkgo", "run"}, arguments(t, n)...)...)
	command.Env = append(os.Environ(), folderVariable+"="+folder, "GORACE="+strings.TrimSpace(os.Getenv("GORACE")+" log_path="+races))
	var report bytes.Buffer
	command.Stdout, command.Stderr = &report, &report
	if testing.Verbose() {
		command.Stdout, command.Stderr = os.Stdout, os.Stderr
	}
	err = command.Run()
	fmt.Print(string(summary.Find(report.Bytes())))
	if err != nil {
		t.Errorf("running the specs in %d processes: %v\n%s", n, err, progress.ReplaceAll(report.Bytes(), nil))
	}
	reportRaces(t, races)
}

// summary is the line that tells how many specs were run.
var summary = regexp.MustCompile(`(?m)^Ran \d+ of \d+ Specs.*\n`)

// progress is what Ginkgo prints for each spec that passes or is skipped.
var progress = regexp.MustCompile(`(?m)^[•S]*•[•S]*`)

// arguments of "ginkgo run": those of this process that are Ginkgo's, and the test binary.
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
		given = append(given, "--timeout="+max(time.Until(deadline)-margin, time.Second).String()) // before one that was given
	}
	for _, argument := range os.Args[1:] {
		if !strings.HasPrefix(argument, "-test.") {
			given = append(given, strings.Replace(argument, "-ginkgo.", "-", 1))
		}
	}
	return append(given, binary, "--", "-test.run=^"+regexp.QuoteMeta(t.Name())+"$")
}

// reportRaces fails the test with what the race detector of a worker has written.
func reportRaces(t *testing.T, prefix string) {
	t.Helper()
	files, err := filepath.Glob(prefix + ".*")
	if err != nil {
		t.Fatalf("finding the reports of the race detector: %v", err)
	}
	for _, file := range files {
		report, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("reading a report of the race detector: %v", err)
			continue
		}
		t.Errorf("a data race:\n%s", report)
	}
}
