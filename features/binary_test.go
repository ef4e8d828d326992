package features_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
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

// BuildBinary returns the program, built without cgo like the releases. The first process that needs it builds it.
func BuildBinary() Binary {
	GinkgoHelper()
	file := filepath.Join(os.Getenv(binariesVariable), "pasteport")
	switch err := os.Mkdir(file+".building", 0o700); {
	case err == nil:
		DeferCleanup(gexec.CleanupBuildArtifacts)
		built, err := gexec.BuildWithEnvironment("github.com/pasteport/pasteport/bootstrap/cmd/pasteport", []string{"CGO_ENABLED=0"}, "-buildvcs=false")
		if err != nil {
			Expect(os.WriteFile(file+".failed", []byte(err.Error()), 0o600)).To(Succeed())
		}
		Expect(err).NotTo(HaveOccurred())
		Expect(os.Rename(built, file)).To(Succeed())
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
