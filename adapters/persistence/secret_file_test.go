package persistence

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Replacing the server secret", Label("J2"), func() {
	var directory string
	var store *Store
	day := func(n int) time.Time { return then.Add(time.Duration(n) * 24 * time.Hour) }
	secrets := func() [][]byte {
		GinkgoHelper()
		all, err := store.Secrets()
		Expect(err).NotTo(HaveOccurred())
		return all
	}
	BeforeEach(func() {
		directory = GinkgoT().TempDir()
		store = openIn(directory)
	})

	It("keeps those before it, the newest first, for every process and after a restart", func(ctx SpecContext) {
		first, other := secrets()[0], openIn(directory)
		Expect(store.ReplaceSecret(ctx, day(1), time.Time{})).To(Succeed())
		second := secrets()[0]
		Expect(other.ReplaceSecret(ctx, day(2), time.Time{})).To(Succeed())
		Expect(secrets()).To(HaveLen(3))
		Expect(secrets()[1:]).To(Equal([][]byte{second, first}))
		Expect(openIn(directory).Secrets()).To(Equal(secrets()))
		for _, secret := range secrets() {
			Expect(secret).To(HaveLen(secretLength))
		}
	})

	It("is looked for at each use, because another process may have sealed with the new one already", Label("I22", "J6"), func(ctx SpecContext) {
		other := openIn(directory)
		for n := range 50 {
			before := secrets()[0]
			Expect(other.ReplaceSecret(ctx, day(n), day(n-2))).To(Succeed())
			Expect(secrets()[0]).NotTo(Equal(before))
			Expect(secrets()[1]).To(Equal(before))
		}
	})

	Context("when somebody has just looked", func() {
		var other *Store
		BeforeEach(func() {
			other = openIn(directory)
			secrets()
			store.secrets.Load().at = time.Since(began) + time.Hour
		})

		It("is looked for again once another process has replaced it", Label("I22", "J6"), func(ctx SpecContext) {
			before := secrets()[0]
			Expect(other.ReplaceSecret(ctx, day(1), time.Time{})).To(Succeed())
			Expect(secrets()).To(HaveExactElements(Not(Equal(before)), Equal(before)))
		})

		It("is not looked for until somebody commits", func(ctx SpecContext) {
			before := secrets()
			Expect(os.Remove(store.secretFile)).To(Succeed())
			Expect(secrets()).To(Equal(before))
			grant, _ := approvedGrant()
			Expect(other.AddGrant(ctx, grant, grant.Supersedes)).To(Succeed())
			_, err := store.Secrets()
			Expect(err).To(MatchError(fs.ErrNotExist))
		})

		It("is looked for again by whoever began to look before somebody committed", Label("I22", "J6"), func(ctx SpecContext) {
			first := store.look()
			grant, _ := approvedGrant()
			Expect(other.AddGrant(ctx, grant, grant.Supersedes)).To(Succeed())
			looked, err := store.lookAtSecrets(first)
			Expect(err).NotTo(HaveOccurred())
			Expect(looked.shows(first)).To(BeTrue())
			Expect(looked.shows(store.look())).To(BeFalse())
		})
	})

	It("is found soon when it was laid there by hand", func() {
		secrets()
		lain := bytes.Repeat([]byte{7}, secretLength)
		Expect(os.WriteFile(store.secretFile+".lain", lain, 0o600)).To(Succeed())
		Expect(os.Rename(store.secretFile+".lain", store.secretFile)).To(Succeed())
		Eventually(secrets).Should(Equal([][]byte{lain}))
	})

	It("notes when each was drawn", func(ctx SpecContext) {
		written, err := os.Stat(store.secretFile)
		Expect(err).NotTo(HaveOccurred())
		Expect(store.ReplaceSecret(ctx, day(1), time.Time{})).To(Succeed())
		kept, err := store.KeptSecrets()
		Expect(err).NotTo(HaveOccurred())
		Expect(kept[0].DrawnAt).To(BeTemporally("==", day(1).Truncate(time.Second)))
		Expect(kept[1].DrawnAt).To(BeTemporally("~", written.ModTime(), time.Second))
	})

	DescribeTable("forgets what was replaced long enough ago", func(ctx SpecContext, forget func() time.Time, left int) {
		for n := range 3 {
			Expect(store.ReplaceSecret(ctx, day(n), time.Time{})).To(Succeed())
		}
		Expect(store.ReplaceSecret(ctx, day(3), forget())).To(Succeed())
		Expect(secrets()).To(HaveLen(1 + left))
	},
		Entry("when that is never", func() time.Time { return time.Time{} }, 4),
		Entry("a moment before the first was replaced", func() time.Time { return day(0).Add(-time.Second) }, 4),
		Entry("to the second", func() time.Time { return day(0).Truncate(time.Second) }, 3),
		Entry("in the middle", func() time.Time { return day(1) }, 2),
		Entry("when that is now", func() time.Time { return day(3) }, 0),
	)

	It("is for the file's owner only, and leaves nothing half written", Label("H7"), func(ctx SpecContext) {
		Expect(store.ReplaceSecret(ctx, day(1), time.Time{})).To(Succeed())
		Expect(mode(store.secretFile)).To(BeEquivalentTo(0o600))
		Expect(filepath.Glob(filepath.Join(directory, "*.new"))).To(BeEmpty())
	})

	It("leaves the file its owner, its mode and a link to it", func(ctx SpecContext) {
		if os.Geteuid() != 0 {
			Skip("only root gives files away")
		}
		kept := filepath.Join(GinkgoT().TempDir(), "kept")
		Expect(os.Rename(store.secretFile, kept)).To(Succeed())
		Expect(os.Symlink(kept, store.secretFile)).To(Succeed())
		Expect(os.Chown(kept, 4711, 4712)).To(Succeed())
		Expect(os.Chmod(kept, 0o640)).To(Succeed())
		Expect(store.ReplaceSecret(ctx, day(1), time.Time{})).To(Succeed())
		Expect(os.Readlink(store.secretFile)).To(Equal(kept))
		Expect(secrets()).To(HaveLen(2))
		Expect(mode(kept)).To(BeEquivalentTo(0o640))
		found, err := os.Stat(kept)
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Sys()).To(And(HaveField("Uid", BeEquivalentTo(4711)), HaveField("Gid", BeEquivalentTo(4712))))
	})

	It("changes nothing when the new file cannot be given to the owner of the old one", func() {
		before := secrets()
		refused := func(*os.File) error { return errors.New("not yours to give") }
		Expect(writeSecret(store.secretFile, []byte("new"), refused)).To(MatchError(ContainSubstring("not yours to give")))
		Expect(secrets()).To(Equal(before))
		Expect(filepath.Glob(filepath.Join(directory, "*.new"))).To(BeEmpty())
	})

	It("follows no link where it writes the new file", func(ctx SpecContext) {
		elsewhere := filepath.Join(GinkgoT().TempDir(), "elsewhere")
		write("mine")(elsewhere)
		Expect(os.Symlink(elsewhere, store.secretFile+".new")).To(Succeed())
		Expect(store.ReplaceSecret(ctx, day(1), time.Time{})).To(Succeed())
		Expect(os.ReadFile(elsewhere)).To(BeEquivalentTo("mine"))
	})

	It("loses none when several do it at once while others read", Label("I22"), func(ctx SpecContext) {
		first := secrets()[0]
		var racing sync.WaitGroup
		for range 4 {
			mine := openIn(directory)
			racing.Go(func() {
				defer GinkgoRecover()
				for range 5 {
					Expect(mine.ReplaceSecret(ctx, day(1), time.Time{})).To(Succeed())
					all, err := mine.Secrets()
					Expect(err).NotTo(HaveOccurred())
					Expect(bytes.Equal(all[len(all)-1], first)).To(BeTrue())
				}
			})
		}
		racing.Wait()
		Expect(secrets()).To(HaveLen(21))
	})

	DescribeTable("refuses a file that", func(ctx SpecContext, spoil func(content string) string, said string) {
		Expect(store.ReplaceSecret(ctx, day(1), time.Time{})).To(Succeed())
		content, err := os.ReadFile(store.secretFile)
		Expect(err).NotTo(HaveOccurred())
		write(spoil(string(content)))(store.secretFile)
		_, err = store.KeptSecrets()
		Expect(err).To(MatchError(And(ContainSubstring(said), ContainSubstring("restore it"))))
		Expect(store.ReplaceSecret(ctx, day(2), time.Time{})).To(MatchError(ContainSubstring(said)))
		Expect(os.ReadFile(store.secretFile)).To(BeEquivalentTo(spoil(string(content))))
	},
		Entry("is empty", func(string) string { return "" }, "has 0 bytes"),
		Entry("has no title", func(content string) string { return content[1:] }, "neither one secret of 32 nor a list"),
		Entry("is cut off", func(content string) string { return content[:len(content)-1] }, "neither one secret of 32 nor a list"),
		Entry("is cut off behind a line", func(string) string { return secretsTitle + "\n" }, "neither one secret of 32 nor a list"),
		Entry("has no date", func(content string) string { return secretsTitle + "\nyesterday" + content[len(secretsTitle)+21:] }, "is damaged in line 2"),
		Entry("has a short secret", func(content string) string { return content[:len(content)-9] + "\n" }, "is damaged in line 3"),
		Entry("has an empty line", func(content string) string { return content + "\n" }, "is damaged in line 4"),
	)
})

var _ = DescribeTable("The server secret that replicas are given", Label("H7"), func(given, left os.FileMode) {
	store := &Store{secretFile: filepath.Join(GinkgoT().TempDir(), "secret")}
	Expect(os.WriteFile(store.secretFile, make([]byte, secretLength), 0o600)).To(Succeed())
	Expect(os.Chmod(store.secretFile, given)).To(Succeed())
	Expect(store.makeSharedSecret(nil)).To(Succeed())
	Expect(mode(store.secretFile)).To(Equal(left))
},
	Entry("is left to its group as it is mounted", os.FileMode(0o440), os.FileMode(0o440)),
	Entry("is left to its owner", os.FileMode(0o400), os.FileMode(0o400)),
	Entry("is taken from everybody", os.FileMode(0o444), os.FileMode(0o600)),
	Entry("is taken from a group that may write it", os.FileMode(0o660), os.FileMode(0o600)),
)
