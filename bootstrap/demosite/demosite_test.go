package demosite

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

func TestDemosite(t *testing.T) {
	suite.Run(t, "Demo site")
}

func open(folder string) *Site {
	GinkgoHelper()
	site, err := Open(folder)
	Expect(err).NotTo(HaveOccurred())
	return site
}

// visit returns a client of the site. A person without a role is unknown.
func visit(ctx context.Context, site *Site, name string, role Role) *mcp.ClientSession {
	GinkgoHelper()
	near, far := mcp.NewInMemoryTransports()
	_, err := site.MCPServer(func(mcp.Request) (oauth.Caller, bool) {
		return oauth.Caller{Subject: name, Roles: []string{string(role)}}, role != ""
	}).Connect(ctx, far, nil)
	Expect(err).NotTo(HaveOccurred())
	session, err := mcp.NewClient(&mcp.Implementation{Name: "visitor", Version: "1"}, nil).Connect(ctx, near, nil)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(session.Close)
	return session
}

type arguments = map[string]any

// call returns the result of a tool; a refusal is an error.
func call[T any](ctx context.Context, session *mcp.ClientSession, tool string, in arguments) (out T, err error) {
	GinkgoHelper()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: in})
	Expect(err).NotTo(HaveOccurred())
	if result.IsError {
		return out, fmt.Errorf("%s", result.Content[0].(*mcp.TextContent).Text)
	}
	text, err := json.Marshal(result.StructuredContent)
	Expect(err).NotTo(HaveOccurred())
	return out, json.Unmarshal(text, &out)
}

func slugs(ctx context.Context, session *mcp.ClientSession) (all []string) {
	GinkgoHelper()
	found, err := call[articleList](ctx, session, "list_articles", nil)
	Expect(err).NotTo(HaveOccurred())
	for _, article := range found.Articles {
		Expect(article.Body).To(BeEmpty())
		all = append(all, article.Slug)
	}
	return all
}

var _ = Describe("The demo site", func() {
	var folder string
	var site *Site
	BeforeEach(func() {
		folder = GinkgoT().TempDir()
		site = open(folder)
	})

	It("creates, lists, reads and deletes articles, also after a restart", func(ctx SpecContext) {
		ada := visit(ctx, site, "ada", Editor)
		made, err := call[Article](ctx, ada, "create_article", arguments{"title": " My garden! ", "body": "Beans."})
		Expect(err).NotTo(HaveOccurred())
		Expect(made.Created).NotTo(BeZero())
		made.Created = made.Created.UTC()
		Expect(made).To(Equal(Article{
			Slug:    "my-garden",
			Title:   "My garden!",
			Body:    "Beans.",
			Author:  "ada",
			Created: made.Created,
		}))
		ada = visit(ctx, open(folder), "ada", Editor)
		Expect(call[Article](ctx, ada, "get_article", arguments{"slug": "my-garden"})).To(Equal(made))
		Expect(slugs(ctx, ada)).To(Equal([]string{"my-garden", "welcome-to-the-demo-site", "house-style"}))
		for _, slug := range []string{"my-garden", "house-style"} {
			Expect(call[Article](ctx, ada, "delete_article", arguments{"slug": slug})).To(HaveField("Slug", slug))
		}
		Expect(slugs(ctx, visit(ctx, open(folder), "rob", Reader))).To(Equal([]string{"welcome-to-the-demo-site"}))
	})

	DescribeTable("explains a refusal", func(ctx SpecContext, role Role, tool string, in arguments, why string) {
		before := slugs(ctx, visit(ctx, site, "rob", Reader))
		_, err := call[Article](ctx, visit(ctx, site, "ada", role), tool, in)
		Expect(err).To(MatchError(ContainSubstring(why)))
		Expect(slugs(ctx, visit(ctx, site, "rob", Reader))).To(Equal(before))
	},
		Entry("of an article that does not exist", Editor, "delete_article", arguments{"slug": "nothing"},
			`article "nothing" does not exist; list_articles lists the articles`),
		Entry("of a blank title", Author, "create_article", arguments{"title": " "}, "needs a title"),
		Entry("of a role", Reader, "create_article", arguments{"title": "x"}, "may not use create_article"),
		Entry("of a caller who is unknown", Role(""), "list_articles", nil, "ask an editor for a token"),
	)

	It("serves exactly the tools of an editor, which say what they do", func(ctx SpecContext) {
		hints := map[string]string{}
		for tool, err := range visit(ctx, site, "ada", Editor).Tools(ctx, nil) {
			Expect(err).NotTo(HaveOccurred())
			Expect(tool.Description).NotTo(BeEmpty())
			Expect(tool.OutputSchema).NotTo(BeNil())
			Expect(tool.Annotations.OpenWorldHint).To(HaveValue(BeFalse()))
			switch {
			case tool.Annotations.ReadOnlyHint:
				hints[tool.Name] = "reads"
			case *tool.Annotations.DestructiveHint:
				hints[tool.Name] = "destroys"
			default:
				hints[tool.Name] = "adds"
			}
		}
		Expect(hints).To(Equal(map[string]string{
			"list_articles":  "reads",
			"get_article":    "reads",
			"create_article": "adds",
			"delete_article": "destroys",
		}))
	})

	It("loses no article that two processes write at once", func(ctx SpecContext) {
		var running sync.WaitGroup
		for range 4 {
			ada := visit(ctx, open(folder), "ada", Author)
			running.Go(func() {
				defer GinkgoRecover()
				for range 10 {
					_, err := call[Article](ctx, ada, "create_article", arguments{"title": "Same title"})
					Expect(err).NotTo(HaveOccurred())
				}
			})
		}
		running.Wait()
		found := slugs(ctx, visit(ctx, site, "rob", Reader))
		Expect(found).To(HaveLen(42))
		Expect(found).To(ContainElements("same-title", "same-title-2", "same-title-40"))
	})

	It("logs why it failed, and does not tell the caller", func(ctx SpecContext) {
		var log bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		DeferCleanup(slog.SetDefault, before)
		eve := visit(ctx, site, "eve", Editor)
		Expect(site.Ping(ctx)).To(Succeed())
		Expect(os.Remove(site.file)).To(Succeed())
		Expect(site.Ping(ctx)).To(MatchError(ContainSubstring("reading the site")))
		for tool, in := range map[string]arguments{"list_articles": nil, "create_article": {"title": "News"}} {
			_, err := call[Article](ctx, eve, tool, in)
			Expect(err).To(MatchError("internal error; try again later"))
		}
		Expect(strings.Count(log.String(), "no such file")).To(Equal(2))
	})

	DescribeTable("does not open", func(spoil func(), why string) {
		spoil()
		_, err := Open(folder)
		Expect(err).To(MatchError(And(ContainSubstring(folder), ContainSubstring(why))))
	},
		Entry("without its folder", func() { Expect(os.RemoveAll(folder)).To(Succeed()) }, "must be a writable folder"),
	)

	Describe("verifies tokens", func() {
		It("and does not call one unknown when it cannot read its file", func(ctx SpecContext) {
			token, _ := site.IssueToken("ada", Author)
			Expect(os.Remove(site.file)).To(Succeed())
			_, err := site.VerifyBearer(ctx, token)
			Expect(err).To(MatchError(And(ContainSubstring("looking up a token"), Not(ContainSubstring(token)))))
			Expect(err).NotTo(MatchError(oauth.ErrUnknownBearer))
		})

		It("of its first editor, created once by concurrent starts", func(ctx SpecContext) {
			created := make(chan string, 8)
			var running sync.WaitGroup
			for range cap(created) {
				running.Go(func() {
					defer GinkgoRecover()
					token, err := open(folder).EnsureEditorToken("")
					Expect(err).NotTo(HaveOccurred())
					if token != "" {
						created <- token
					}
				})
			}
			running.Wait()
			Expect(created).To(HaveLen(1))
			Expect(site.VerifyBearer(ctx, <-created)).
				To(Equal(oauth.Principal{Subject: "editor", Roles: []string{"editor"}}))
		})
	})
})
