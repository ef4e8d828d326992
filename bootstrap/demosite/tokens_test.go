package demosite

import (
	"os"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Giving out API tokens", func() {
	var (
		file string
		site *Site
	)
	BeforeEach(func() {
		file = newFile()
		site = openSite(file)
	})

	DescribeTable("knows its tokens by owner and role",
		func(ctx SpecContext, role Role) {
			token, err := site.IssueToken(ctx, "ada@example.com", role)
			Expect(err).NotTo(HaveOccurred())
			Expect(token).To(MatchRegexp(`^demo_[A-Z2-7]{26,}$`))
			Expect(site.VerifyBearer(ctx, token)).To(Equal(oauth.Principal{Subject: "ada@example.com", Roles: []string{string(role)}}))
		},
		Entry("when it is a reader's", Reader), Entry("when it is an author's", Author), Entry("when it is an editor's", Editor),
	)

	DescribeTable("does not know any other text",
		func(ctx SpecContext, spoil func(string) string) {
			token, err := site.IssueToken(ctx, "ada", Editor)
			Expect(err).NotTo(HaveOccurred())
			_, err = site.VerifyBearer(ctx, spoil(token))
			Expect(err).To(MatchError(oauth.ErrUnknownBearer))
		},
		Entry("when it is empty", func(string) string { return "" }),
		Entry("when the case differs", strings.ToLower),
		Entry("when more follows", func(token string) string { return token + "A" }),
		Entry("when it is the stored digest", func(token string) string { return string(digestOf(token)) }),
	)

	It("forgets a revoked token, and no other", func(ctx SpecContext) {
		kept, _ := site.IssueToken(ctx, "ada", Author)
		lost, _ := site.IssueToken(ctx, "ada", Author)
		Expect(site.RevokeToken(ctx, lost)).To(Succeed())
		_, err := site.VerifyBearer(ctx, lost)
		Expect(err).To(MatchError(oauth.ErrUnknownBearer))
		Expect(site.VerifyBearer(ctx, kept)).NotTo(BeZero())
		Expect(site.RevokeToken(ctx, lost)).To(MatchError(oauth.ErrUnknownBearer))
	})

	It("does not call a token unknown because the database failed", func(ctx SpecContext) {
		token, _ := site.IssueToken(ctx, "ada", Author)
		Expect(site.Close()).To(Succeed())
		_, err := site.VerifyBearer(ctx, token)
		Expect(err).To(HaveOccurred())
		Expect(err).NotTo(MatchError(oauth.ErrUnknownBearer))
		Expect(err.Error()).NotTo(ContainSubstring(token))
	})

	DescribeTable("refuses to issue a token",
		func(ctx SpecContext, owner string, role Role) {
			token, err := site.IssueToken(ctx, owner, role)
			Expect(err).To(HaveOccurred())
			Expect(token).To(BeEmpty())
		},
		Entry("without an owner", " ", Reader), Entry("for an owner on two lines", "a\nb", Reader),
		Entry("for an endless owner", strings.Repeat("x", 101), Reader),
		Entry("with an unknown role", "ada", Role("admin")), Entry("without a role", "ada", Role("")),
	)

	It("makes the first editor's token once", func(ctx SpecContext) {
		created, err := site.EnsureEditorToken(ctx, "")
		Expect(err).NotTo(HaveOccurred())
		Expect(site.VerifyBearer(ctx, created)).To(Equal(oauth.Principal{Subject: "editor", Roles: []string{"editor"}}))
		Expect(site.EnsureEditorToken(ctx, "")).To(BeEmpty())
	})

	It("makes one only, however many start at once", func(ctx SpecContext) {
		created := make(chan string, 8)
		var running sync.WaitGroup
		for range cap(created) {
			running.Go(func() {
				defer GinkgoRecover()
				token, err := site.EnsureEditorToken(ctx, "")
				Expect(err).NotTo(HaveOccurred())
				if token != "" {
					created <- token
				}
			})
		}
		running.Wait()
		Expect(created).To(HaveLen(1))
	})

	It("takes the token that it is given, as often as it is given, and makes none up", func(ctx SpecContext) {
		for range 2 {
			Expect(site.EnsureEditorToken(ctx, "chosen-by-the-operator")).To(BeEmpty())
		}
		Expect(site.VerifyBearer(ctx, "chosen-by-the-operator")).To(Equal(oauth.Principal{Subject: "editor", Roles: []string{"editor"}}))
		Expect(site.EnsureEditorToken(ctx, "")).To(BeEmpty())
	})

	It("makes an editor of the owner whose token it is given", func(ctx SpecContext) {
		token, _ := site.IssueToken(ctx, "ada", Reader)
		Expect(site.EnsureEditorToken(ctx, token)).To(BeEmpty())
		Expect(site.VerifyBearer(ctx, token)).To(Equal(oauth.Principal{Subject: "ada", Roles: []string{"editor"}}))
	})

	DescribeTable("refuses a given token that cannot be pasted, without repeating it",
		func(ctx SpecContext, token string) {
			_, err := site.EnsureEditorToken(ctx, token)
			Expect(err).To(MatchError(ContainSubstring("printable ASCII")))
			Expect(err.Error()).NotTo(ContainSubstring(token))
		},
		Entry("when it has a space", "two words"), Entry("when it ends in a line break", "token\n"),
		Entry("when it is no ASCII", "schlüssel"), Entry("when it is too long", strings.Repeat("x", 4097)),
	)

	It("keeps no token in clear, in any of its files", func(ctx SpecContext) {
		made, _ := site.EnsureEditorToken(ctx, "")
		issued, _ := site.IssueToken(ctx, "a-name-that-is-found", Reader)
		given := "chosen-by-the-operator"
		_, err := site.EnsureEditorToken(ctx, given)
		Expect(err).NotTo(HaveOccurred())

		var bytes strings.Builder
		for _, suffix := range []string{"", "-wal", "-shm"} {
			content, err := os.ReadFile(file + suffix)
			Expect(err).NotTo(HaveOccurred())
			bytes.Write(content)
		}
		Expect(bytes.String()).To(ContainSubstring("a-name-that-is-found"))
		for _, token := range []string{made, issued, given} {
			Expect(token).NotTo(BeEmpty())
			Expect(bytes.String()).To(ContainSubstring(string(digestOf(token))))
			Expect(bytes.String()).NotTo(ContainSubstring(token))
		}
	})
})
