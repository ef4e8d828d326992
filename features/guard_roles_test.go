package features_test

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/demosite"
)

// The tools of each role of the demo site.
var (
	readerTools = []string{"list_articles", "get_article"}
	authorTools = append([]string{"create_article"}, readerTools...)
	editorTools = append([]string{"delete_article"}, authorTools...)
)

// TokenFor issues a token of the site for a person.
func (w *World) TokenFor(_ context.Context, owner string, role demosite.Role) string {
	GinkgoHelper()
	token, err := w.Site().IssueToken(owner, role)
	Expect(err).NotTo(HaveOccurred())
	return token
}

// ConnectAs runs a whole code flow with this host token.
func (c *Client) ConnectAs(ctx context.Context, hostToken string) Tokens {
	GinkgoHelper()
	approved := c.Consent(ctx).Approve(ctx, hostToken)
	Expect(approved.StatusCode).To(Equal(http.StatusSeeOther), approved.Text)
	answer := c.Token(ctx, c.Exchange(approved.Target().Query().Get("code")))
	Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
	return answer.Tokens()
}

var _ = Describe("Roles", Label("roles"), func() {
	var world *World
	var client *Client
	BeforeEach(func() {
		world = NewWorld()
		client = world.NewClient()
	})
	as := func(ctx context.Context, role demosite.Role, revision string) *Conversation {
		GinkgoHelper()
		return world.Converse(ctx, revision,
			client.ConnectAs(ctx, world.TokenFor(ctx, string(role)+" ada", role)).Access)
	}

	DescribeTableSubtree("in revision", func(revision string) {
		DescribeTable("lists only the tools of the role", func(ctx SpecContext, role demosite.Role, tools []string) {
			Expect(as(ctx, role, revision).Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(tools))
		},
			Entry("reader", demosite.Reader, readerTools),
			Entry("author", demosite.Author, authorTools),
			Entry("editor", demosite.Editor, editorTools),
		)

		DescribeTable("refuses a tool as if it did not exist",
			func(ctx SpecContext, role demosite.Role, tool string, arguments params) {
				person, editor := as(ctx, role, revision), world.Converse(ctx, revision, client.Connect(ctx).Access)
				before := editor.Use(ctx, "list_articles", params{}).Text()
				refusal := person.Use(ctx, tool, arguments).Error
				Expect(refusal.Code).To(Equal(-32602))
				Expect(refusal.Message).To(Equal(`unknown tool "` + tool + `"`))
				Expect(editor.Use(ctx, "list_articles", params{}).Text()).To(Equal(before))
			},
			Entry("when a reader calls one that writes", demosite.Reader, "create_article", params{"title": "Mine"}),
			Entry("when an author calls one that deletes", demosite.Author, "delete_article",
				params{"slug": "house-style"}),
			Entry("when the tool does not exist", demosite.Editor, "drop_tables", params{}),
		)
	}, revisions())

	It("applies the role of each token, also for tokens of the same person", func(ctx SpecContext) {
		low := world.Converse(ctx, stateless, client.ConnectAs(ctx, world.TokenFor(ctx, "ada", demosite.Reader)).Access)
		high := world.Converse(ctx, stateless,
			client.ConnectAs(ctx, world.TokenFor(ctx, "ada", demosite.Editor)).Access)
		Expect(high.Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(editorTools))
		Expect(low.Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(readerTools))
	})
})
