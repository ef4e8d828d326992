package demosite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	maxTitle = 200 // characters
	maxList  = 100 // articles
)

const instructions = `A small site whose articles are Markdown texts.
Your role decides which tools you may use:
a reader reads articles, an author also writes them, and an editor also deletes them.
Tell the person the slug of a new article.`

// Article is a Markdown text on the site.
type Article struct {
	Slug    string    `json:"slug" jsonschema:"names the article in the other tools"`
	Title   string    `json:"title"`
	Body    string    `json:"body,omitempty" jsonschema:"the Markdown text; lists leave it out"`
	Author  string    `json:"author"`
	Created time.Time `json:"created"`
}

type articleList struct {
	Articles []Article `json:"articles"`
}

type slugInput struct {
	Slug string `json:"slug" jsonschema:"the article's slug, from list_articles"`
}

type textInput struct {
	Title string `json:"title" jsonschema:"one line, at most 200 characters"`
	Body  string `json:"body,omitempty" jsonschema:"Markdown"`
}

// refusal is an error whose text the caller may read.
type refusal string

func (r refusal) Error() string { return string(r) }

// MCPServer serves the site's articles as tools. callerOf returns the caller of a request. A
// request without a caller is refused.
func (s *Site) MCPServer(callerOf func(mcp.Request) (oauth.Caller, bool)) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "demosite", Title: "Demo site", Version: "1.0.0"},
		&mcp.ServerOptions{
			Instructions: instructions,
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		})
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(false)}
	addTool(s, server, callerOf, &mcp.Tool{
		Name:        "list_articles",
		Title:       "List articles",
		Annotations: reads,
		Description: fmt.Sprintf("Lists the newest %d articles, newest first and without their text.", maxList),
	}, s.list)
	addTool(s, server, callerOf, &mcp.Tool{
		Name:        "get_article",
		Title:       "Read an article",
		Annotations: reads,
		Description: "Returns one article with its Markdown text.",
	}, s.get)
	addTool(s, server, callerOf, &mcp.Tool{
		Name:        "create_article",
		Title:       "Create an article",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(false)},
		Description: "Creates an article with you as the author.",
	}, s.create)
	addTool(s, server, callerOf, &mcp.Tool{
		Name:        "delete_article",
		Title:       "Delete an article",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: new(true), IdempotentHint: true, OpenWorldHint: new(false)},
		Description: "Deletes an article permanently, and returns it.",
	}, s.remove)
	return server
}

// addTool adds a tool to the server. An error becomes the tool's result, so that the model can read
// it; only the log says why the site failed.
func addTool[In, Out any](s *Site, server *mcp.Server, callerOf func(mcp.Request) (oauth.Caller, bool),
	tool *mcp.Tool, verb func(oauth.Caller, In) (Out, error)) {
	handle := func(ctx context.Context, r *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		var none Out
		caller, known := callerOf(r)
		if !known || !s.MayCall(caller, tool.Name) {
			return nil, none, refusal("you may not use " + tool.Name + " on this site; ask an editor for a token")
		}
		out, err := verb(caller, in)
		if _, refused := errors.AsType[refusal](err); err == nil || refused {
			return nil, out, err
		}
		slog.ErrorContext(ctx, "the demo site failed", "error", err)
		return nil, none, refusal("internal error; try again later")
	}
	mcp.AddTool(server, tool, handle)
}

func (s *Site) list(oauth.Caller, struct{}) (articleList, error) {
	c, err := s.read()
	if err != nil {
		return articleList{}, err
	}
	newest := c.Articles[max(0, len(c.Articles)-maxList):]
	slices.Reverse(newest)
	for i := range newest {
		newest[i].Body = ""
	}
	return articleList{newest}, nil
}

func (s *Site) get(_ oauth.Caller, in slugInput) (Article, error) {
	c, err := s.read()
	if err != nil {
		return Article{}, err
	}
	i, err := c.find(in.Slug)
	if err != nil {
		return Article{}, err
	}
	return c.Articles[i], nil
}

func (s *Site) create(caller oauth.Caller, in textInput) (article Article, err error) {
	title := strings.TrimSpace(in.Title)
	if title == "" || utf8.RuneCountInString(title) > maxTitle || strings.ContainsFunc(title, unicode.IsControl) {
		return Article{}, refusal(fmt.Sprintf("an article needs a title: one line of at most %d characters", maxTitle))
	}
	err = s.change(func(c *content) error {
		article = c.add(title, in.Body, caller.Subject)
		return nil
	})
	return article, err
}

func (s *Site) remove(_ oauth.Caller, in slugInput) (removed Article, err error) {
	err = s.change(func(c *content) error {
		i, err := c.find(in.Slug)
		if err != nil {
			return err
		}
		removed = c.Articles[i]
		c.Articles = slices.Delete(c.Articles, i, i+1)
		return nil
	})
	return removed, err
}

// find returns the index of the article, or a refusal.
func (c *content) find(slug string) (int, error) {
	i := slices.IndexFunc(c.Articles, func(a Article) bool { return a.Slug == slug })
	if i < 0 {
		return 0, refusal(fmt.Sprintf("article %q does not exist; list_articles lists the articles", slug))
	}
	return i, nil
}

// add adds an article with a slug that no other has: "My garden" becomes "my-garden", and the next
// one "my-garden-2".
func (c *content) add(title, body, author string) Article {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	wanted := cmp.Or(strings.Join(words, "-"), "article")
	slug := wanted
	for n := 2; slices.ContainsFunc(c.Articles, func(a Article) bool { return a.Slug == slug }); n++ {
		slug = fmt.Sprintf("%s-%d", wanted, n)
	}
	c.Articles = append(c.Articles, Article{
		Slug:    slug,
		Title:   title,
		Body:    body,
		Author:  author,
		Created: time.Now().UTC().Truncate(time.Second),
	})
	return c.Articles[len(c.Articles)-1]
}
