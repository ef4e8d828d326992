package demosite

import (
	"context"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Roles of the demo site", func() {
	DescribeTable("allow tools",
		func(allowed string, roles ...Role) {
			var usable []string
			site := &Site{}
			for _, tool := range slices.Sorted(maps.Keys(needed)) {
				if site.MayCall(callerWith("ada", roles...), tool) {
					usable = append(usable, strings.TrimSuffix(strings.TrimSuffix(tool, "_articles"), "_article"))
				}
			}
			Expect(strings.Join(usable, " ")).To(Equal(allowed))
		},
		Entry("that read, for a reader", "get list", Reader),
		Entry("that write, for an author", "create get list update", Author),
		Entry("of every kind, for an editor", "archive create delete get list publish update", Editor),
		Entry("by the highest of several roles", "create get list update", Author, Reader, Role("owner")),
		Entry("none, without a role", ""),
		Entry("none, for an unknown role", "", Role("admin"), Role("EDITOR"), Role("")),
	)

	It("do not allow an unknown tool", func() {
		Expect((&Site{}).MayCall(callerWith("ada", Editor), "drop_tables")).To(BeFalse())
	})

	It("are defined for exactly the served tools", func(ctx SpecContext) {
		var served []string
		for tool, err := range visit(ctx, openSite(newFile()), "ada", Editor).session.Tools(ctx, nil) {
			Expect(err).NotTo(HaveOccurred())
			served = append(served, tool.Name)
		}
		Expect(served).To(ConsistOf(slices.Collect(maps.Keys(needed))))
	})

	input := func(tool, slug string) arguments {
		if tool == "update_article" {
			return arguments{"slug": slug, "title": "Changed"}
		}
		return arguments{"slug": slug}
	}

	DescribeTable("allow the tools for an article",
		func(ctx SpecContext, role Role, owner string, state State, allowed string) {
			site := openSite(newFile())
			ada := visit(ctx, site, "ada", role)
			for _, tool := range []string{"get_article", "update_article", "publish_article", "archive_article",
				"delete_article"} {
				article := place(ctx, site, owner, state)
				refusal := ada.call(ctx, tool, input(tool, article.Slug), &Article{})
				Expect(refusal == "").
					To(Equal(strings.Contains(allowed, strings.TrimSuffix(tool, "_article"))), "%s: %s", tool, refusal)
				if after := stored(site, article.ID); refusal != "" || tool == "get_article" {
					Expect(after).To(Equal(article), tool)
				} else {
					Expect(after).NotTo(Equal(article), tool)
				}
			}
		},
		Entry("as a reader, a draft", Reader, "bob", Draft, ""),
		Entry("as a reader, a published one", Reader, "bob", Published, "get"),
		Entry("as a reader, an archived one", Reader, "bob", Archived, ""),
		Entry("as a reader, a draft of their own", Reader, "ada", Draft, ""),
		Entry("as a reader, an archived one of their own", Reader, "ada", Archived, ""),
		Entry("as an author, a draft of their own", Author, "ada", Draft, "get update"),
		Entry("as an author, a published one of their own", Author, "ada", Published, "get"),
		Entry("as an author, an archived one of their own", Author, "ada", Archived, "get"),
		Entry("as an author, another author's draft", Author, "bob", Draft, ""),
		Entry("as an author, another author's published one", Author, "bob", Published, "get"),
		Entry("as an author, another author's archived one", Author, "bob", Archived, ""),
		Entry("as an editor, a draft", Editor, "bob", Draft, "get update publish delete"),
		Entry("as an editor, a published one", Editor, "bob", Published, "get update archive"),
		Entry("as an editor, an archived one", Editor, "bob", Archived, "get publish delete"),
	)

	DescribeTable("allow changes",
		func(role Role, owner string, state State, allowed bool) {
			err := actor{"ada", role}.checkRevise(&Article{Author: owner, State: state})
			Expect(err == nil).To(Equal(allowed))
		},
		Entry("as an author with a draft of their own", Author, "ada", Draft, true),
		Entry("as an author with another author's draft", Author, "bob", Draft, false),
		Entry("as an author with a published one of their own", Author, "ada", Published, false),
		Entry("as a reader with a draft of their own", Reader, "ada", Draft, false),
		Entry("as an editor with another author's published one", Editor, "bob", Published, true),
	)

	DescribeTable("limit the lists of the tool and of the resources",
		func(ctx SpecContext, role Role, expected ...string) {
			site := openSite(newFile())
			Expect(site.db.Where("TRUE").Delete(&Article{}).Error).To(Succeed())
			for _, state := range []State{Draft, Published, Archived} {
				place(ctx, site, "ada", state)
				place(ctx, site, "bob", state)
			}
			ada := visit(ctx, site, "ada", role)
			Expect(slugsOf(ada.list(ctx, nil).Articles)).To(ConsistOf(expected))
			Expect(resourceSlugs(ctx, ada)).To(ConsistOf(expected))
		},
		Entry("as a reader", Reader, "published-of-ada", "published-of-bob"),
		Entry("as an author", Author, "published-of-ada", "published-of-bob", "draft-of-ada", "archived-of-ada"),
		Entry("as an editor", Editor, "published-of-ada", "published-of-bob", "draft-of-ada", "archived-of-ada",
			"draft-of-bob", "archived-of-bob"),
	)
})

func resourceSlugs(ctx context.Context, v visitor) []string {
	GinkgoHelper()
	slugs := []string{}
	for resource, err := range v.session.Resources(ctx, nil) {
		Expect(err).NotTo(HaveOccurred())
		slugs = append(slugs, strings.TrimPrefix(resource.URI, "article://"))
	}
	return slugs
}
