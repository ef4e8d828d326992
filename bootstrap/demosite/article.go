package demosite

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// State is the state of an article.
type State string

// The states of an article. All readers of the site can see published articles.
const (
	Draft     State = "draft"
	Published State = "published"
	Archived  State = "archived"
)

// The maximum lengths of an article's texts, in characters.
const (
	MaxTitle = 200
	MaxBody  = 100_000
	maxSlug  = 60
)

// Refusal is an error whose text may be shown to the caller.
type Refusal string

func (r Refusal) Error() string { return string(r) }

func refuse(format string, values ...any) error { return Refusal(fmt.Sprintf(format, values...)) }

// Article is a Markdown text that is a draft, published or archived. Only its methods change it,
// and they refuse any transition that is not in this diagram:
//
//	          Publish              Archive
//	draft --------------> published ------> archived
//	                          ^---------------'
//	                               Publish
//
// Drafts and published articles can be revised; archived ones cannot, until they are published
// again. A published article must be archived before it can be deleted.
type Article struct {
	ID        int64      `json:"-"`
	Slug      string     `json:"slug" jsonschema:"names the article in the other tools; article:// and the slug is its resource URI"`
	Title     string     `json:"title"`
	Body      string     `json:"body,omitempty" jsonschema:"the Markdown text; lists leave it out"`
	Author    string     `json:"author"`
	State     State      `json:"state" jsonschema:"draft, published or archived"`
	Created   time.Time  `json:"created"`
	Updated   time.Time  `json:"updated"`
	Published *time.Time `json:"published,omitempty" jsonschema:"when it was last published"`
	deleted   bool
}

// NewDraft returns a draft by the author. The store sets its slug, which never changes, because
// links contain it.
func NewDraft(author, title, body string, now time.Time) (*Article, error) {
	draft := &Article{Author: author, State: Draft, Created: now}
	if err := draft.write(title, body, now); err != nil {
		return nil, err
	}
	return draft, nil
}

// Revise replaces the title and the body; an empty argument keeps the current text.
func (a *Article) Revise(title, body string, now time.Time) error {
	switch {
	case a.State == Archived:
		return refuse("%q is archived and cannot be changed; publish_article brings it back", a.Slug)
	case title == "" && body == "":
		return refuse("give a new title, a new body or both")
	case title == "":
		title = a.Title
	case body == "":
		body = a.Body
	}
	return a.write(title, body, now)
}

func (a *Article) write(title, body string, now time.Time) error {
	title = strings.TrimSpace(title)
	switch {
	case title == "":
		return refuse("an article needs a title")
	case utf8.RuneCountInString(title) > MaxTitle:
		return refuse("the title is too long: at most %d characters", MaxTitle)
	case strings.ContainsFunc(title, unicode.IsControl):
		return refuse("the title must be one line without control characters")
	case utf8.RuneCountInString(body) > MaxBody:
		return refuse("the body is too long: at most %d characters", MaxBody)
	}
	a.Title, a.Body, a.Updated = title, body, now
	return nil
}

// Publish makes the article visible to all readers, for the first time or again.
func (a *Article) Publish(now time.Time) error {
	switch {
	case a.State == Published:
		return refuse("%q is published already", a.Slug)
	case strings.TrimSpace(a.Body) == "":
		return refuse("%q has no text yet; update_article gives it a body", a.Slug)
	}
	a.State, a.Updated, a.Published = Published, now, &now
	return nil
}

// Archive hides a published article from readers.
func (a *Article) Archive(now time.Time) error {
	if a.State != Published {
		return refuse("only a published article can be archived; %q is %s", a.Slug, a.State)
	}
	a.State, a.Updated = Archived, now
	return nil
}

// Delete deletes the article permanently.
func (a *Article) Delete(now time.Time) error {
	if a.State == Published {
		return refuse("%q is published; archive it with archive_article before deleting it", a.Slug)
	}
	a.deleted, a.Updated = true, now
	return nil
}

// slugOf turns a title into an ASCII name for URIs: "Crème brûlée!" becomes "creme-brulee".
func slugOf(title string) string {
	var slug strings.Builder
	for _, r := range norm.NFKD.String(strings.ToLower(title)) {
		switch {
		case slug.Len() == maxSlug, unicode.Is(unicode.Mn, r):
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			slug.WriteRune(r)
		case slug.Len() > 0 && !strings.HasSuffix(slug.String(), "-"):
			slug.WriteByte('-')
		}
	}
	if name := strings.Trim(slug.String(), "-"); name != "" {
		return name
	}
	return "article"
}
