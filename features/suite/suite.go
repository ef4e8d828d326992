// Package suite runs the Ginkgo specs of one package.
//
// A Test function calls Run, or RunParallel where the specs take long. Both leave out specs with
// a label of Extra unless SPECS_ALSO or the label filter names it, keep temporary files in
// memory where the system has room for them, and write how long each spec took, and why it failed,
// into the folder that SPECS_TIMES names. RunParallel spreads the specs over several processes,
// because go test starts only one per package.
package suite

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
)

// The environment variables that Run and RunParallel read.
const (
	alsoVariable      = "SPECS_ALSO"      // labels of Extra whose specs run too
	timesVariable     = "SPECS_TIMES"     // a folder for the times and the failures of the specs
	processesVariable = "SPECS_PROCESSES" // how many processes RunParallel starts; 1 runs the specs in this one
)

// Extra are the labels of specs that a run leaves out unless it is asked for them, so that it is
// the same on every machine, and short.
var Extra = []string{
	"browser", // runs in Chromium
	"engines", // runs on PostgreSQL or MariaDB
	"parsers", // runs the JSON parsers of Node and Python
	"long",    // takes seconds
	"soak",    // takes minutes
}

// Filter adds to a label filter that specs of the labels of Extra are left out, except for labels
// that the filter or the variable names.
func Filter(given, also string) string {
	var parts []string
	if given != "" {
		parts = append(parts, "("+given+")")
	}
	for _, label := range Extra {
		if !strings.Contains(given, label) && !strings.Contains(also, label) {
			parts = append(parts, "!"+label)
		}
	}
	return strings.Join(parts, " && ")
}

// Needs fails a spec that uses what only specs with the label may use. It catches a spec that would
// run or fail by what a machine has installed.
func Needs(label string) {
	ginkgo.GinkgoHelper()
	gomega.Expect(ginkgo.CurrentSpecReport().Labels()).To(gomega.ContainElement(label),
		"the spec needs Label(%q)", label)
}

// Resource starts something that the processes of one run share. It returns environment variables
// with its address, as "NAME=value"; stop ends it.
type Resource func() (environment []string, stop func() error, err error)

// Run runs the specs of this package in this process.
func Run(t *testing.T, description string, shared ...Resource) {
	t.Helper()
	release := prepare(t, shared)
	defer release()
	run(t, description)
}

// RunParallel runs the specs of this package in several processes.
func RunParallel(t *testing.T, description string, shared ...Resource) {
	t.Helper()
	if isWorker() {
		run(t, description)
		return
	}
	release := prepare(t, shared)
	defer release()
	if n := processes(t); n > 1 {
		runWorkers(t, n)
		return
	}
	run(t, description)
}

// gcPercent is GOGC for specs, which allocate much and keep little: the heaps stay small, and a
// collection comes a quarter as often.
const gcPercent = 400

func run(t *testing.T, description string) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	gomega.RegisterFailHandler(ginkgo.Fail)
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.LabelFilter = Filter(suite.LabelFilter, os.Getenv(alsoVariable))
	ginkgo.RunSpecs(t, description, suite, reporter)
}

// prepare starts the shared resources and moves temporary files to memory, until release.
func prepare(t *testing.T, shared []Resource) (release func()) {
	t.Helper()
	remove, err := keepFilesInMemory()
	if err != nil {
		t.Fatalf("keeping temporary files in memory: %v", err)
	}
	ends := []func() error{remove}
	for _, share := range shared {
		environment, stop, err := share()
		if err != nil {
			t.Fatalf("sharing a resource: %v", err)
		}
		ends = append(ends, stop)
		for _, variable := range environment {
			name, value, _ := strings.Cut(variable, "=")
			t.Setenv(name, value)
		}
	}
	return func() {
		for i := len(ends) - 1; i >= 0; i-- {
			if err := ends[i](); err != nil {
				t.Errorf("cleaning up: %v", err)
			}
		}
	}
}

// After a run, process 1 writes two files about the specs of all processes: one line per spec that
// ran, with seconds, package and sentence, and the messages of those that failed.
var _ = ginkgo.ReportAfterSuite("Writing the times and failures of the specs", func(report ginkgo.Report) {
	folder := os.Getenv(timesVariable)
	if folder == "" {
		return
	}
	var times, failures strings.Builder
	for _, spec := range report.SpecReports {
		if spec.LeafNodeType.Is(types.NodeTypeIt) && spec.State != types.SpecStateSkipped {
			fmt.Fprintf(&times, "%.2f\t%s\t%s\n", spec.RunTime.Seconds(), filepath.Base(report.SuitePath),
				spec.FullText())
		}
		if spec.Failed() {
			fmt.Fprintf(&failures, "%s %s: %s\n  %s\n  %s\n", spec.State, spec.LeafNodeType, spec.FullText(),
				spec.FailureLocation(), spec.FailureMessage())
		}
	}
	file := filepath.Join(folder, strings.ReplaceAll(report.SuitePath, string(filepath.Separator), "_"))
	write(file+".tsv", times.String())
	write(file+".failed", failures.String())
})

func write(file, text string) {
	ginkgo.GinkgoHelper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		ginkgo.Fail(fmt.Sprintf("writing the results of the specs: %v", err))
	}
}

// processes returns the number of processes for a parallel run.
func processes(t *testing.T) int {
	suite, _ := ginkgo.GinkgoConfiguration()
	// Ginkgo lists specs in one process only, and coverage is of one process.
	if suite.DryRun || testing.CoverMode() != "" {
		return 1
	}
	given := os.Getenv(processesVariable)
	if given == "" {
		return min(processesPerCPU*runtime.GOMAXPROCS(0), maxProcesses)
	}
	n, err := strconv.Atoi(given)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: set it to a number of processes, 1 or more", processesVariable, given)
	}
	return n
}
