package demosite

import (
	"os"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("API tokens", func() {
	var (
		file string
		site *Site
	)
	BeforeEach(func() {
		file = newFile()
		site = openSite(file)
	})

	DescribeTable("are verified with owner and role",
		func(ctx SpecContext, role Role) {
			token, err := site.IssueToken(ctx, "ada@example.com", role)
			Expect(err).NotTo(HaveOccurred())
			Expect(token).To(MatchRegexp(`^demo_[A-Z2-7]{26,}$`))
			Expect(site.VerifyBearer(ctx, token)).
				To(Equal(oauth.Principal{Subject: "ada@example.com", Roles: []string{string(role)}}))
		},
		Entry("when it is a reader's", Reader), Entry("when it is an author's", Author),
		Entry("when it is an editor's", Editor),
	)

	DescribeTable("are unknown",
		func(ctx SpecContext, spoil func(string) string) {
			token, err := site.IssueToken(ctx, "ada", Editor)
			Expect(err).NotTo(HaveOccurred())
			_, err = site.VerifyBearer(ctx, spoil(token))
			Expect(err).To(MatchError(oauth.ErrUnknownBearer))
		},
		Entry("when it is empty", func(string) string { return "" }),
		Entry("when the case differs", strings.ToLower),
		Entry("when text is appended", func(token string) string { return token + "A" }),
		Entry("when it is the stored digest", func(token string) string { return string(digestOf(token)) }),
	)

	It("are unknown after revocation, without affecting others", func(ctx SpecContext) {
		kept, _ := site.IssueToken(ctx, "ada", Author)
		lost, _ := site.IssueToken(ctx, "ada", Author)
		Expect(site.RevokeToken(ctx, lost)).To(Succeed())
		_, err := site.VerifyBearer(ctx, lost)
		Expect(err).To(MatchError(oauth.ErrUnknownBearer))
		Expect(site.VerifyBearer(ctx, kept)).NotTo(BeZero())
		Expect(site.RevokeToken(ctx, lost)).To(MatchError(oauth.ErrUnknownBearer))
	})

	It("are not reported as unknown when the database fails", func(ctx SpecContext) {
		token, _ := site.IssueToken(ctx, "ada", Author)
		Expect(site.Close()).To(Succeed())
		_, err := site.VerifyBearer(ctx, token)
		Expect(err).To(HaveOccurred())
		Expect(err).NotTo(MatchError(oauth.ErrUnknownBearer))
		Expect(err.Error()).NotTo(ContainSubstring(token))
	})

	DescribeTable("are not issued",
		func(ctx SpecContext, owner string, role Role) {
			token, err := site.IssueToken(ctx, owner, role)
			Expect(err).To(HaveOccurred())
			Expect(token).To(BeEmpty())
		},
		Entry("without an owner", " ", Reader), Entry("for an owner on two lines", "a\nb", Reader),
		Entry("for an owner that is too long", strings.Repeat("x", 101), Reader),
		Entry("with an unknown role", "ada", Role("admin")), Entry("without a role", "ada", Role("")),
	)

	It("are created for the first editor once", func(ctx SpecContext) {
		created, err := site.EnsureEditorToken(ctx, "")
		Expect(err).NotTo(HaveOccurred())
		Expect(site.VerifyBearer(ctx, created)).To(Equal(oauth.Principal{Subject: "editor", Roles: []string{"editor"}}))
		Expect(site.EnsureEditorToken(ctx, "")).To(BeEmpty())
	})

	It("are created for the first editor once by concurrent starts", func(ctx SpecContext) {
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

	It("can be given for the first editor, repeatedly, and none is generated then", func(ctx SpecContext) {
		for range 2 {
			Expect(site.EnsureEditorToken(ctx, "chosen-by-the-operator")).To(BeEmpty())
		}
		Expect(site.VerifyBearer(ctx, "chosen-by-the-operator")).
			To(Equal(oauth.Principal{Subject: "editor", Roles: []string{"editor"}}))
		Expect(site.EnsureEditorToken(ctx, "")).To(BeEmpty())
	})

	It("become editor tokens when they are given for the first editor", func(ctx SpecContext) {
		token, _ := site.IssueToken(ctx, "ada", Reader)
		Expect(site.EnsureEditorToken(ctx, token)).To(BeEmpty())
		Expect(site.VerifyBearer(ctx, token)).To(Equal(oauth.Principal{Subject: "ada", Roles: []string{"editor"}}))
	})

	DescribeTable("are refused without being printed",
		func(ctx SpecContext, token string) {
			_, err := site.EnsureEditorToken(ctx, token)
			Expect(err).To(MatchError(ContainSubstring("printable ASCII")))
			Expect(err.Error()).NotTo(ContainSubstring(token))
		},
		Entry("when it has a space", "two words"), Entry("when it ends in a line break", "token\n"),
		Entry("when it is not ASCII", "schlüssel"), Entry("when it is too long", strings.Repeat("x", 4097)),
	)

	It("are not stored in plain text in any file", func(ctx SpecContext) {
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
