package demosite

import (
	"context"
	"encoding/json"
	"path/filepath"
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

func newFile() string { return filepath.Join(GinkgoT().TempDir(), "site.db") }

func openSite(file string) *Site {
	GinkgoHelper()
	site, err := Open(file)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(site.Close)
	return site
}

func callerWith(subject string, roles ...Role) oauth.Caller {
	caller := oauth.Caller{Subject: subject}
	for _, role := range roles {
		caller.Roles = append(caller.Roles, string(role))
	}
	return caller
}

// visitor is an MCP client of the site.
type visitor struct{ session *mcp.ClientSession }

func visit(ctx context.Context, site *Site, subject string, roles ...Role) visitor {
	GinkgoHelper()
	return visitWith(ctx, site, func(mcp.Request) (oauth.Caller, bool) { return callerWith(subject, roles...), true })
}

func visitWith(ctx context.Context, site *Site, callerOf func(mcp.Request) (oauth.Caller, bool)) visitor {
	GinkgoHelper()
	near, far := mcp.NewInMemoryTransports()
	_, err := site.MCPServer(callerOf).Connect(ctx, far, nil)
	Expect(err).NotTo(HaveOccurred())
	session, err := mcp.NewClient(&mcp.Implementation{Name: "visitor", Version: "1"}, nil).Connect(ctx, near, nil)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(session.Close)
	return visitor{session}
}

type arguments = map[string]any

// call returns the text of a refusal, or ""; a protocol error fails the spec.
func (v visitor) call(ctx context.Context, tool string, in arguments, out any) (refusal string) {
	GinkgoHelper()
	result, err := v.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: in})
	Expect(err).NotTo(HaveOccurred())
	if result.IsError {
		return result.Content[0].(*mcp.TextContent).Text
	}
	text, err := json.Marshal(result.StructuredContent)
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(text, out)).To(Succeed())
	return ""
}

func (v visitor) must(ctx context.Context, tool string, in arguments) Article {
	GinkgoHelper()
	var article Article
	Expect(v.call(ctx, tool, in, &article)).To(BeEmpty())
	return article
}

func (v visitor) refused(ctx context.Context, tool string, in arguments) string {
	GinkgoHelper()
	refusal := v.call(ctx, tool, in, &Article{})
	Expect(refusal).NotTo(BeEmpty(), "%s went through", tool)
	return refusal
}

func (v visitor) list(ctx context.Context, in arguments) page {
	GinkgoHelper()
	var found page
	Expect(v.call(ctx, "list_articles", in, &found)).To(BeEmpty())
	return found
}

func slugsOf(articles []*Article) []string {
	slugs := []string{}
	for _, article := range articles {
		slugs = append(slugs, article.Slug)
	}
	return slugs
}

// place adds an article of the owner in this state.
func place(ctx context.Context, site *Site, owner string, state State) *Article {
	GinkgoHelper()
	article, err := NewDraft(owner, string(state)+" of "+owner, "text", site.now())
	Expect(err).NotTo(HaveOccurred())
	if state != Draft {
		Expect(article.Publish(site.now())).To(Succeed())
	}
	if state == Archived {
		Expect(article.Archive(site.now())).To(Succeed())
	}
	Expect(site.add(ctx, article)).To(Succeed())
	return stored(site, article.ID)
}

func stored(site *Site, id int64) *Article {
	GinkgoHelper()
	var articles []*Article
	Expect(site.db.Where("id = ?", id).Find(&articles).Error).To(Succeed())
	if len(articles) == 0 {
		return nil
	}
	return articles[0]
}
