package demosite

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("An article", func() {
	monday := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	tuesday := monday.Add(24 * time.Hour)

	in := func(state State) *Article {
		published := monday
		article := &Article{
			Slug:    "news",
			Title:   "News",
			Body:    "text",
			Author:  "ada",
			State:   state,
			Created: monday,
			Updated: monday,
		}
		if state != Draft {
			article.Published = &published
		}
		return article
	}

	It("starts as a draft with a trimmed title", func() {
		Expect(NewDraft("ada", "  News ", "", monday)).To(Equal(
			&Article{
				Title:   "News",
				Author:  "ada",
				State:   Draft,
				Created: monday,
				Updated: monday,
			}))
	})

	It("accepts the longest texts, counted in characters", func() {
		_, err := NewDraft("ada", strings.Repeat("é", MaxTitle), strings.Repeat("é", MaxBody), monday)
		Expect(err).NotTo(HaveOccurred())
	})

	DescribeTable("refuses a text",
		func(title, body, why string) {
			article, err := NewDraft("ada", title, body, monday)
			Expect(err).To(MatchError(ContainSubstring(why)))
			Expect(article).To(BeNil())
			kept := in(Draft)
			Expect(kept.Revise(title+" ", body, tuesday)).To(MatchError(ContainSubstring(why)))
			Expect(kept).To(Equal(in(Draft)))
		},
		Entry("when the title is blank", " ", "text", "needs a title"),
		Entry("when the title is too long", strings.Repeat("x", MaxTitle+1), "text", "at most 200 characters"),
		Entry("when the title has two lines", "one\ntwo", "text", "one line"),
		Entry("when the body is too long", "News", strings.Repeat("x", MaxBody+1), "at most 100000 characters"),
	)

	publish := (*Article).Publish
	archive := (*Article).Archive
	remove := (*Article).Delete
	revise := func(a *Article, now time.Time) error { return a.Revise("Other", "words", now) }

	DescribeTable("changes its state",
		func(from State, verb func(*Article, time.Time) error, to State) {
			article := in(from)
			Expect(verb(article, tuesday)).To(Succeed())
			Expect(article.State).To(Equal(to))
			Expect(article.Updated).To(Equal(tuesday))
			Expect(article.Created).To(Equal(monday))
		},
		Entry("when a draft is published", Draft, publish, Published),
		Entry("when an archived article is published again", Archived, publish, Published),
		Entry("when a published article is archived", Published, archive, Archived),
		Entry("when a draft is revised", Draft, revise, Draft),
		Entry("when a published article is revised", Published, revise, Published),
		Entry("when a draft is deleted", Draft, remove, Draft),
		Entry("when an archived article is deleted", Archived, remove, Archived),
	)

	DescribeTable("refuses a transition",
		func(from State, verb func(*Article, time.Time) error, why string) {
			article := in(from)
			Expect(verb(article, tuesday)).To(MatchError(ContainSubstring(why)))
			Expect(article).To(Equal(in(from)))
		},
		Entry("when a published article is published", Published, publish, "published already"),
		Entry("when a draft is archived", Draft, archive, "only a published article"),
		Entry("when an archived article is archived", Archived, archive, "only a published article"),
		Entry("when an archived article is revised", Archived, revise, "publish_article brings it back"),
		Entry("when a published article is deleted", Published, remove, "archive it with archive_article before"),
	)

	It("stores the time of its latest publication", func() {
		article := in(Archived)
		Expect(article.Publish(tuesday)).To(Succeed())
		Expect(article.Published).To(HaveValue(Equal(tuesday)))
	})

	It("does not publish a blank body", func() {
		article := in(Draft)
		article.Body = " \n"
		Expect(article.Publish(tuesday)).To(MatchError(ContainSubstring("no text yet")))
		Expect(article.State).To(Equal(Draft))
	})

	It("keeps the text that a revision leaves out, and refuses an empty revision", func() {
		article := in(Draft)
		Expect(article.Revise("Olds", "", tuesday)).To(Succeed())
		Expect(article.Revise("", "words", tuesday)).To(Succeed())
		Expect([]string{article.Title, article.Body}).To(Equal([]string{"Olds", "words"}))
		Expect(article.Revise("", "", tuesday)).To(MatchError(ContainSubstring("give a new title")))
	})

	DescribeTable("has a slug in ASCII",
		func(title, slug string) { Expect(slugOf(title)).To(Equal(slug)) },
		Entry("when the title has accents and punctuation", "  Crème brûlée, 2nd try! ", "creme-brulee-2nd-try"),
		Entry("when no letters remain", "日本語 — ?", "article"),
		Entry("when the title is long", strings.Repeat("abcde ", 30),
			strings.TrimSuffix(strings.Repeat("abcde-", 10), "-")),
	)
})
