package demosite

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Articles as MCP resources", func() {
	var site *Site
	BeforeEach(func() { site = openSite(newFile()) })

	It("have a resource template", func(ctx SpecContext) {
		found, err := visit(ctx, site, "eve", Reader).session.ListResourceTemplates(ctx, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(found.ResourceTemplates).To(HaveLen(1))
		Expect(found.ResourceTemplates[0].URITemplate).To(Equal("article://{slug}"))
	})

	It("are read as Markdown with the title as heading", func(ctx SpecContext) {
		found, err := visit(ctx, site, "eve", Reader).
			session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "article://house-style"})
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Contents).To(HaveLen(1))
		Expect(found.Contents[0].MIMEType).To(Equal("text/markdown"))
		Expect(found.Contents[0].Text).To(HavePrefix("# House style\n\n- One thought"))
		Expect(found.CacheScope).To(Equal("private"))
	})

	DescribeTable("are visible to the same callers as with get_article",
		func(ctx SpecContext, role Role, uri string, readable bool) {
			place(ctx, site, "ada", Draft)
			place(ctx, site, "bob", Draft)
			_, err := visit(ctx, site, "ada", role).session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
			if readable {
				Expect(err).NotTo(HaveOccurred())
			} else {
				Expect(err).To(MatchError(ContainSubstring("not found")))
			}
		},
		Entry("when an author reads a draft of their own", Author, "article://draft-of-ada", true),
		Entry("when an author reads another author's draft", Author, "article://draft-of-bob", false),
		Entry("when a reader reads a draft", Reader, "article://draft-of-ada", false),
		Entry("when an editor reads a draft", Editor, "article://draft-of-bob", true),
		Entry("when a caller without a role reads a published article", Role("admin"), "article://house-style", false),
		Entry("when the article does not exist", Editor, "article://nothing", false),
		Entry("when the URI is not an article", Editor, "file:///etc/passwd", false),
	)

	It("are listed with title and state, not cacheable for other callers", func(ctx SpecContext) {
		found, err := visit(ctx, site, "eve", Reader).session.ListResources(ctx, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(found.CacheScope).To(Equal("private"))
		Expect(found.Resources[1].URI).To(Equal("article://house-style"))
		Expect(found.Resources[1].Title).To(Equal("House style"))
		Expect(found.Resources[1].Description).To(Equal("By editor, published"))
	})

	It("are listed in pages", func(ctx SpecContext) {
		ada := visit(ctx, site, "ada", Author)
		for n := range maxLimit {
			ada.must(ctx, "create_article", arguments{"title": fmt.Sprint("Note ", n)})
		}
		Expect(resourceSlugs(ctx, ada)).To(HaveLen(maxLimit + 2))
		_, err := ada.session.ListResources(ctx, &mcp.ListResourcesParams{Cursor: "not a cursor"})
		Expect(err).To(MatchError(ContainSubstring("unknown cursor")))
	})

	It("are listed with their current state", func(ctx SpecContext) {
		eve, reader := visit(ctx, site, "eve", Editor), visit(ctx, site, "rob", Reader)
		eve.must(ctx, "archive_article", arguments{"slug": "house-style"})
		Expect(resourceSlugs(ctx, reader)).To(Equal([]string{"welcome-to-the-demo-site"}))
	})
})
