// Package suite runs the Ginkgo specs of one package.
//
// A Test function calls Run, or RunParallel where the specs take long. Both leave out specs with the label "soak" unless a label filter
// is given, keep temporary files in memory where the system has room for them, and write how long each spec took into the folder
// that SPECS_TIMES names. RunParallel spreads the specs over several processes, because go test starts only one per package.
package suite

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
)

// The environment variables that Run and RunParallel read.
const (
	timesVariable     = "SPECS_TIMES"     // a folder for files with a line per spec: seconds, package, sentence
	processesVariable = "SPECS_PROCESSES" // how many processes RunParallel starts; 1 runs the specs in this one
)

// quick is the label filter of a run that does not ask for certain specs.
const quick = "!soak"

// Resource is something that the processes of one run share. It returns the environment variables that tell them where it is, as
// "NAME=value", and ends with stop.
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

func run(t *testing.T, description string) {
	gomega.RegisterFailHandler(ginkgo.Fail)
	suite, reporter := ginkgo.GinkgoConfiguration()
	if suite.LabelFilter == "" {
		suite.LabelFilter = quick
	}
	ginkgo.RunSpecs(t, description, suite, reporter)
}

// prepare provides temporary files and shared resources, until release.
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

// After a run process 1 writes what it took for all.
var _ = ginkgo.ReportAfterSuite("Writing the times of the specs", func(report ginkgo.Report) {
	folder := os.Getenv(timesVariable)
	if folder == "" {
		return
	}
	var lines strings.Builder
	for _, spec := range report.SpecReports {
		if spec.LeafNodeType.Is(types.NodeTypeIt) && spec.State != types.SpecStateSkipped {
			fmt.Fprintf(&lines, "%.2f\t%s\t%s\n", spec.RunTime.Seconds(), filepath.Base(report.SuitePath), spec.FullText())
		}
	}
	file := filepath.Join(folder, strings.ReplaceAll(report.SuitePath, string(filepath.Separator), "_")+".tsv")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		ginkgo.Fail(fmt.Sprintf("writing the times of the specs: %v", err))
	}
})

// processes returns how many processes a parallel run gets. Specs wait more than they compute.
func processes(t *testing.T) int {
	suite, _ := ginkgo.GinkgoConfiguration()
	if suite.DryRun || testing.CoverMode() != "" { // Ginkgo lists specs in one process only, and coverage is of one process
		return 1
	}
	asked := os.Getenv(processesVariable)
	if asked == "" {
		return severalPerProcessor()
	}
	n, err := strconv.Atoi(asked)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, which is no number of processes", processesVariable, asked)
	}
	return n
}
