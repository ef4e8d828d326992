package demosite

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("The MCP tools of the demo site", func() {
	var site *Site
	BeforeEach(func() { site = openSite(newFile()) })

	It("list the sample articles of a new site", func(ctx SpecContext) {
		found := visit(ctx, site, "eve", Reader).list(ctx, nil)
		Expect(slugsOf(found.Articles)).To(Equal([]string{"welcome-to-the-demo-site", "house-style"}))
		Expect(found.Articles[0].Body).To(BeEmpty())
		Expect(found.NextCursor).To(BeEmpty())
	})

	It("create, update, publish, archive and delete an article", func(ctx SpecContext) {
		noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
		site.clock = func() time.Time { return noon.Add(400 * time.Millisecond) }
		ada, eve := visit(ctx, site, "ada", Author), visit(ctx, site, "eve", Editor)

		article := ada.must(ctx, "create_article", arguments{"title": "My garden", "body": "Beans."})
		Expect(article).To(Equal(Article{
			Slug:    "my-garden",
			Title:   "My garden",
			Body:    "Beans.",
			Author:  "ada",
			State:   Draft,
			Created: noon,
			Updated: noon,
		}))
		Expect(ada.must(ctx, "get_article", arguments{"slug": "my-garden"})).To(Equal(article))

		later := noon.Add(time.Hour)
		site.clock = func() time.Time { return later }
		article.Title, article.Body, article.Updated = "Our garden", "Beans and peas.", later
		Expect(ada.must(ctx, "update_article",
			arguments{"slug": "my-garden", "title": "Our garden", "body": "Beans and peas."})).To(Equal(article))

		article.State, article.Published = Published, &later
		Expect(eve.must(ctx, "publish_article", arguments{"slug": "my-garden"})).To(Equal(article))
		article.State = Archived
		Expect(eve.must(ctx, "archive_article", arguments{"slug": "my-garden"})).To(Equal(article))
		Expect(eve.must(ctx, "delete_article", arguments{"slug": "my-garden"})).To(Equal(article))
		Expect(eve.refused(ctx, "get_article", arguments{"slug": "my-garden"})).To(ContainSubstring("no article"))
	})

	It("give articles with the same title different slugs", func(ctx SpecContext) {
		ada := visit(ctx, site, "ada", Author)
		for _, slug := range []string{"house-style-2", "house-style-3"} {
			Expect(ada.must(ctx, "create_article", arguments{"title": "House style"}).Slug).To(Equal(slug))
		}
		Expect(ada.must(ctx, "create_article", arguments{"title": "House"}).Slug).To(Equal("house"))
	})

	It("list in pages, newest first, while other people write", func(ctx SpecContext) {
		ada := visit(ctx, site, "ada", Author)
		for n := range 5 {
			ada.must(ctx, "create_article", arguments{"title": fmt.Sprint("Note ", n)})
		}
		first := ada.list(ctx, arguments{"state": "draft", "limit": 2})
		Expect(slugsOf(first.Articles)).To(Equal([]string{"note-4", "note-3"}))
		ada.must(ctx, "create_article", arguments{"title": "Note 5"})
		second := ada.list(ctx, arguments{"state": "draft", "limit": 3, "cursor": first.NextCursor})
		Expect(slugsOf(second.Articles)).To(Equal([]string{"note-2", "note-1", "note-0"}))
		Expect(second.NextCursor).To(BeEmpty())
	})

	It("list 20 articles by default", func(ctx SpecContext) {
		for range 21 {
			place(ctx, site, "ada", Draft)
		}
		found := visit(ctx, site, "ada", Author).list(ctx, arguments{"state": "draft"})
		Expect(found.Articles).To(HaveLen(20))
		Expect(found.NextCursor).NotTo(BeEmpty())
	})

	DescribeTable("explain a refusal",
		func(ctx SpecContext, role Role, tool string, in arguments, why string) {
			Expect(visit(ctx, site, "ada", role).refused(ctx, tool, in)).To(ContainSubstring(why))
		},
		Entry("when the article does not exist", Editor, "publish_article", arguments{"slug": "nothing"},
			`no article "nothing"; list_articles lists`),
		Entry("when the role is too low", Reader, "create_article", arguments{"title": "News"},
			"it needs the role author"),
		Entry("when the role is unknown", Role("admin"), "list_articles", nil, "you have no role"),
		Entry("when an author changes a published article of another person", Author, "update_article",
			arguments{"slug": "house-style", "title": "x"}, "only an editor"),
		Entry("when the title is blank", Author, "create_article", arguments{"title": " "}, "needs a title"),
		Entry("when the title is missing", Author, "create_article", arguments{"body": "x"}, "title"),
		Entry("when the title is not a text", Author, "create_article", arguments{"title": 7}, "title"),
		Entry("when an input is unknown", Author, "create_article",
			arguments{"title": "x", "state": "published"}, "state"),
		Entry("when an update is empty", Editor, "update_article", arguments{"slug": "house-style"},
			"give a new title"),
		Entry("when the limit is too high", Reader, "list_articles", arguments{"limit": 101}, "limit must be 1 to 100"),
		Entry("when the limit is negative", Reader, "list_articles", arguments{"limit": -1}, "limit must be 1 to 100"),
		Entry("when the state is unknown", Reader, "list_articles", arguments{"state": "lost"},
			"draft, published or archived"),
		Entry("when the cursor is made up", Reader, "list_articles", arguments{"cursor": "not a cursor"}, "nextCursor"),
	)

	It("refuse an unknown caller", func(ctx SpecContext) {
		stranger := visitWith(ctx, site, func(mcp.Request) (oauth.Caller, bool) {
			return callerWith("ada", Editor), false
		})
		Expect(stranger.refused(ctx, "list_articles", nil)).To(ContainSubstring("sign in first"))
		Expect(resourceSlugs(ctx, stranger)).To(BeEmpty())
		_, err := stranger.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "article://house-style"})
		Expect(err).To(MatchError(ContainSubstring("not found")))
	})

	It("check the role at every call", func(ctx SpecContext) {
		role := Editor
		ada := visitWith(ctx, site, func(mcp.Request) (oauth.Caller, bool) { return callerWith("ada", role), true })
		ada.must(ctx, "create_article", arguments{"title": "One"})
		role = Reader
		Expect(ada.refused(ctx, "create_article", arguments{"title": "Two"})).To(ContainSubstring("role"))
	})

	It("have annotations", func(ctx SpecContext) {
		hints := map[string]string{}
		for tool, err := range visit(ctx, site, "ada", Editor).session.Tools(ctx, nil) {
			Expect(err).NotTo(HaveOccurred())
			Expect(tool.Description).NotTo(BeEmpty())
			Expect(tool.OutputSchema).NotTo(BeNil())
			Expect(tool.Annotations.IdempotentHint).To(Equal(tool.Name != "create_article"), tool.Name)
			Expect(tool.Annotations.OpenWorldHint).To(HaveValue(BeFalse()))
			switch hint := tool.Annotations; {
			case hint.ReadOnlyHint:
				hints[tool.Name] = "reads"
			case *hint.DestructiveHint:
				hints[tool.Name] = "destroys"
			default:
				hints[tool.Name] = "adds"
			}
		}
		Expect(hints).To(Equal(map[string]string{
			"list_articles":   "reads",
			"get_article":     "reads",
			"create_article":  "adds",
			"update_article":  "destroys",
			"publish_article": "adds",
			"archive_article": "adds",
			"delete_article":  "destroys",
		}))
	})

	It("log internal errors and do not return them", func(ctx SpecContext) {
		var log bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		DeferCleanup(slog.SetDefault, before)
		eve := visit(ctx, site, "eve", Editor)
		Expect(site.Close()).To(Succeed())

		Expect(eve.refused(ctx, "list_articles", nil)).To(Equal("internal error; try again later"))
		_, err := eve.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "article://house-style"})
		Expect(err).To(MatchError(HaveSuffix("internal error; try again later")))
		_, err = eve.session.ListResources(ctx, nil)
		Expect(err).To(MatchError(HaveSuffix("internal error; try again later")))
		Expect(strings.Count(log.String(), "database is closed")).To(Equal(3))
	})

	It("create many articles concurrently, each with its own slug", func(ctx SpecContext) {
		var running sync.WaitGroup
		for n := range 8 {
			ada := visit(ctx, site, fmt.Sprint("author-", n), Author)
			running.Go(func() {
				defer GinkgoRecover()
				for range 10 {
					ada.must(ctx, "create_article", arguments{"title": "Same title"})
				}
			})
		}
		running.Wait()
		var slugs []string
		Expect(site.db.Model(&Article{}).Where("title = ?", "Same title").Distinct().Pluck("slug", &slugs).Error).
			To(Succeed())
		Expect(slugs).To(HaveLen(80))
	})
})
