package demosite

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type slugInput struct {
	Slug string `json:"slug" jsonschema:"the article's slug, from list_articles"`
}

type createInput struct {
	Title string `json:"title" jsonschema:"one line, at most 200 characters"`
	Body  string `json:"body,omitempty" jsonschema:"Markdown, at most 100000 characters; can be added later"`
}

type updateInput struct {
	Slug  string `json:"slug" jsonschema:"the article's slug; it stays the same when the title changes"`
	Title string `json:"title,omitempty" jsonschema:"the new title, one line of at most 200 characters; default: unchanged"`
	Body  string `json:"body,omitempty" jsonschema:"the whole new Markdown text, at most 100000 characters; default: unchanged"`
}

func (t *toolServer) addTools() {
	addTool(t, &mcp.Tool{
		Name:        "list_articles",
		Title:       "List articles",
		Annotations: reads(),
		Description: "Lists the articles that you may see, newest first and without their text.",
	}, t.site.list)
	addTool(t, &mcp.Tool{
		Name:        "get_article",
		Title:       "Read an article",
		Annotations: reads(),
		Description: "Returns one article with its Markdown text.",
	}, t.site.getArticle)
	addTool(t, &mcp.Tool{
		Name:        "create_article",
		Title:       "Create an article",
		Annotations: writes(false, false),
		Description: "Creates a draft with you as the author. Readers see it only after publish_article.",
	}, t.site.createArticle)
	addTool(t, &mcp.Tool{
		Name:        "update_article",
		Title:       "Update an article",
		Annotations: writes(true, true),
		Description: "Replaces the title, the text or both; the previous version is not kept. Authors may update " +
			"their own drafts, editors every draft and published article.",
	}, t.site.updateArticle)
	addTool(t, &mcp.Tool{
		Name:        "publish_article",
		Title:       "Publish an article",
		Annotations: writes(false, true),
		Description: "Makes a draft or an archived article visible to all readers.",
	}, t.site.changeBy((*Article).Publish))
	addTool(t, &mcp.Tool{
		Name:        "archive_article",
		Title:       "Archive an article",
		Annotations: writes(false, true),
		Description: "Hides a published article from readers; publish_article brings it back.",
	}, t.site.changeBy((*Article).Archive))
	addTool(t, &mcp.Tool{
		Name:        "delete_article",
		Title:       "Delete an article",
		Annotations: writes(true, true),
		Description: "Deletes a draft or an archived article permanently, and returns it.",
	}, t.site.changeBy((*Article).Delete))
}

func reads() *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(false)}
}

func writes(destructive, idempotent bool) *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{DestructiveHint: &destructive, IdempotentHint: idempotent, OpenWorldHint: new(false)}
}

func (s *Site) getArticle(ctx context.Context, by actor, in slugInput) (*Article, error) {
	return s.find(ctx, by, in.Slug)
}

func (s *Site) createArticle(ctx context.Context, by actor, in createInput) (*Article, error) {
	article, err := NewDraft(by.subject, in.Title, in.Body, s.now())
	if err != nil {
		return nil, err
	}
	return article, s.add(ctx, article)
}

func (s *Site) updateArticle(ctx context.Context, by actor, in updateInput) (*Article, error) {
	return s.change(ctx, by, in.Slug, func(article *Article) error {
		if err := by.checkRevise(article); err != nil {
			return err
		}
		return article.Revise(in.Title, in.Body, s.now())
	})
}

// changeBy returns the handler of a tool that changes the state of an article. It checks no role,
// because the tool policy lets only editors call these tools, and they may change every article.
func (s *Site) changeBy(verb func(*Article, time.Time) error) func(context.Context, actor,
	slugInput) (*Article, error) {
	return func(ctx context.Context, by actor, in slugInput) (*Article, error) {
		return s.change(ctx, by, in.Slug, func(article *Article) error { return verb(article, s.now()) })
	}
}
