package secretfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/suite"
)

func TestSecretFile(t *testing.T) { suite.Run(t, "Secret file") }

var _ = Describe("Replacing the server secret in its file", Label("J2"), func() {
	var file string
	day := func(n int) time.Time { return time.UnixMilli(1_770_091_506_789).Add(time.Duration(n) * 24 * time.Hour) }
	secrets := func() []Secret {
		GinkgoHelper()
		kept, err := Read(file, nil)
		Expect(err).NotTo(HaveOccurred())
		return kept.All
	}
	BeforeEach(func() {
		file = filepath.Join(GinkgoT().TempDir(), "oauth.db.secret")
		Expect(Create(file)).To(Succeed())
	})

	DescribeTable("forgets what was replaced long enough ago", func(forget func() time.Time, left int) {
		for n := range 3 {
			Expect(Replace(file, day(n), time.Time{})).To(Succeed())
		}
		Expect(Replace(file, day(3), forget())).To(Succeed())
		Expect(secrets()).To(HaveLen(1 + left))
	},
		Entry("when that is never", func() time.Time { return time.Time{} }, 4),
		Entry("to the second", func() time.Time { return day(0).Truncate(time.Second) }, 3),
		Entry("when that is now", func() time.Time { return day(3) }, 0),
	)

	It("is for the file's owner only, and leaves nothing half written", Label("H7"), func() {
		Expect(Replace(file, day(1), time.Time{})).To(Succeed())
		Expect(mode(file)).To(BeEquivalentTo(0o600))
		Expect(filepath.Glob(filepath.Dir(file) + "/*")).To(ConsistOf(file))
	})

	It("leaves the file its owner, its mode and a link to it", func() {
		if os.Geteuid() != 0 {
			Skip("only root gives files away")
		}
		kept := filepath.Join(GinkgoT().TempDir(), "kept")
		Expect(os.Rename(file, kept)).To(Succeed())
		Expect(os.Symlink(kept, file)).To(Succeed())
		Expect(os.Chown(kept, 4711, 4712)).To(Succeed())
		Expect(os.Chmod(kept, 0o640)).To(Succeed())
		Expect(Replace(file, day(1), time.Time{})).To(Succeed())
		Expect(os.Readlink(file)).To(Equal(kept))
		Expect(secrets()).To(HaveLen(2))
		Expect(mode(kept)).To(BeEquivalentTo(0o640))
		found, err := os.Stat(kept)
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Sys()).To(And(HaveField("Uid", BeEquivalentTo(4711)), HaveField("Gid", BeEquivalentTo(4712))))
	})

	It("changes nothing when the new file cannot be given to the owner of the old one", func() {
		before := secrets()
		Expect(writeFile(file, []byte("new"), ownerless{})).
			To(MatchError(ContainSubstring("does not report the owner")))
		Expect(secrets()).To(Equal(before))
		Expect(filepath.Glob(filepath.Dir(file) + "/*")).To(ConsistOf(file))
	})

	It("leaves a file that another process has made meanwhile", Label("I22"), func() {
		before := secrets()
		Expect(Create(file)).To(Succeed())
		Expect(secrets()).To(Equal(before))
	})

	DescribeTable("refuses a file that", func(spoil func(content string) string, said string) {
		Expect(Replace(file, day(1), time.Time{})).To(Succeed())
		content, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		write(spoil(string(content)))(file)
		_, err = Read(file, nil)
		Expect(err).To(MatchError(And(ContainSubstring(said), ContainSubstring("restore it"))))
		Expect(Replace(file, day(2), time.Time{})).To(MatchError(ContainSubstring(said)))
		Expect(os.ReadFile(file)).To(BeEquivalentTo(spoil(string(content))))
	},
		Entry("is empty", func(string) string { return "" }, "is empty"),
		Entry("has no date", func(content string) string { return "yesterday" + content[20:] }, "is damaged in line 1"),
		Entry("has a short secret", func(content string) string {
			return content[:len(content)-9] + "\n"
		}, "is damaged in line 2"),
		Entry("is too long for one secret", func(string) string { return strings.Repeat("s", 33) },
			"is not one secret of 32 bytes"),
	)
})

// ownerless is of a file whose owner the system does not report.
type ownerless struct{ fs.FileInfo }

func (ownerless) Sys() any { return nil }

var _ = DescribeTable("The server secret that replicas are given", Label("H7"), func(given, left os.FileMode) {
	file := filepath.Join(GinkgoT().TempDir(), "secret")
	Expect(os.WriteFile(file, make([]byte, secretLength), 0o600)).To(Succeed())
	Expect(os.Chmod(file, given)).To(Succeed())
	Expect(Protect(file, true)).To(Succeed())
	Expect(mode(file)).To(Equal(left))
},
	Entry("is left to its group as it is mounted", os.FileMode(0o440), os.FileMode(0o440)),
	Entry("loses the permissions of other users", os.FileMode(0o444), os.FileMode(0o600)),
	Entry("is taken from a group that may write it", os.FileMode(0o660), os.FileMode(0o600)),
)

func mode(path string) fs.FileMode {
	found, err := os.Stat(path)
	Expect(err).NotTo(HaveOccurred())
	return found.Mode().Perm()
}

func write(content string) func(file string) {
	return func(file string) { Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed()) }
}
