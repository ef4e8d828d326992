package features_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/cli"
)

// binariesVariable names the folder with the program that all processes of a run share.
const binariesVariable = "SPECS_BINARIES"

// shareBinary creates the folder.
func shareBinary() (environment []string, stop func() error, err error) {
	folder, err := os.MkdirTemp("", "binaries")
	if err != nil {
		return nil, nil, err
	}
	return []string{binariesVariable + "=" + folder}, func() error { return os.RemoveAll(folder) }, nil
}

// buildTime is the time limit of the first build of the program on a busy machine.
const buildTime = 5 * time.Minute

// BuildBinary returns the program, built without cgo like the releases. The first process that
// needs it builds it.
func BuildBinary() Binary {
	GinkgoHelper()
	file := filepath.Join(os.Getenv(binariesVariable), "pasteport")
	switch err := os.Mkdir(file+".building", 0o700); {
	case err == nil:
		Expect(build(file)).To(Succeed())
	case !errors.Is(err, fs.ErrExist):
		Expect(err).NotTo(HaveOccurred())
	}
	Eventually(func() error {
		if failure, err := os.ReadFile(file + ".failed"); err == nil {
			return StopTrying(string(failure))
		}
		_, err := os.Stat(file)
		return err
	}).WithTimeout(buildTime).Should(Succeed())
	return Binary(file)
}

// specVersion is the version that the linker puts into the program.
const specVersion = "v1.2.3-specs"

// build makes file, and beside it a list of which symbol needs which.
func build(file string) error {
	linking := exec.Command("go", "build", "-buildvcs=false", "-tags", "grpcnotrace", "-ldflags=-s -dumpdep -X "+module+
		"bootstrap/service.version="+specVersion, "-o", file+".new", module+"bootstrap/cmd/pasteport")
	linking.Env = append(os.Environ(), "CGO_ENABLED=0")
	said, err := linking.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, said)
		return errors.Join(err, os.WriteFile(file+".failed", []byte(err.Error()), 0o600))
	}
	return errors.Join(os.WriteFile(file+".needs", said, 0o600), os.Rename(file+".new", file))
}

// Needs returns the lines in which the linker reported which symbol needs which.
func (b Binary) Needs() string {
	GinkgoHelper()
	return string(must(os.ReadFile(string(b) + ".needs")))
}

// Ran is the result of a command line.
type Ran struct {
	Code     int
	Out, Err string
}

// Run executes a command line in this process, to its end.
func Run(ctx context.Context, args ...string) Ran { return RunTyping(ctx, "", args...) }

// RunTyping is Run with standard input.
func RunTyping(ctx context.Context, typed string, args ...string) Ran {
	var out, errOut bytes.Buffer
	code := cli.Run(ctx, args, io.NopCloser(strings.NewReader(typed)), &out, &errOut)
	return Ran{code, out.String(), errOut.String()}
}

// parallelCalls is how many callers raceCalls has.
const parallelCalls = 64

// raceCalls makes callers call until change was answered, and once more. A late call began after
// the answer.
func raceCalls(change func(), call func(caller int, late bool)) {
	GinkgoHelper()
	var answered atomic.Bool
	var begun, callers sync.WaitGroup
	begun.Add(parallelCalls)
	for i := range parallelCalls {
		callers.Go(func() {
			defer GinkgoRecover()
			started := sync.OnceFunc(begun.Done)
			defer started()
			for late := false; !late; {
				late = answered.Load()
				call(i, late)
				started()
			}
		})
	}
	begun.Wait()
	change()
	answered.Store(true)
	callers.Wait()
}
