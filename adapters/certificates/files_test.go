package certificates_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/certificates"
	"github.com/pasteport/pasteport/features/suite"
)

func TestCertificates(t *testing.T) {
	suite.Run(t, "Certificates")
}

var _ = Describe("Opening a certificate", func() {
	DescribeTable("fails at once with", func(prepare func(file string) error, complaint string) {
		file := filepath.Join(GinkgoT().TempDir(), "both.pem")
		Expect(prepare(file)).To(Succeed())
		_, err := certificates.OpenFiles("tls", file, file, time.Now, slog.New(slog.DiscardHandler))
		Expect(err).To(MatchError(ContainSubstring(complaint)))
	},
		Entry("a file that is empty", write(""), "both must be PEM"),
		Entry("a file of something else", write("no certificate"), "both must be PEM"),
		Entry("a file that is not there", func(string) error { return nil }, "no such file"),
	)
})

func write(text string) func(file string) error {
	return func(file string) error { return os.WriteFile(file, []byte(text), 0o600) }
}
