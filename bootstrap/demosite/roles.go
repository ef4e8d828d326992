package demosite

import (
	"slices"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Role is what an API token permits on the site.
type Role string

// The roles; each may do everything that the one before it may.
const (
	Reader Role = "reader" // reads what is published
	Author Role = "author" // also writes drafts, and sees and changes those of their own
	Editor Role = "editor" // does everything to every article
)

var ranks = []Role{Reader, Author, Editor}

// needed is the tool policy: the lowest role that may use a tool.
var needed = map[string]Role{
	"list_articles":   Reader,
	"get_article":     Reader,
	"create_article":  Author,
	"update_article":  Author,
	"publish_article": Editor,
	"archive_article": Editor,
	"delete_article":  Editor,
}

// atLeast is false for every role that the site does not know.
func (r Role) atLeast(lowest Role) bool {
	rank := slices.Index(ranks, r)
	return rank >= 0 && rank >= slices.Index(ranks, lowest)
}

func (r Role) mayUse(tool string) bool {
	lowest, known := needed[tool]
	return known && r.atLeast(lowest)
}

// MayCall is the tool policy of the site: it reports whether the caller's roles allow the tool at all. Which articles the
// tool may touch is decided when it runs.
func (s *Site) MayCall(caller oauth.Caller, tool string) bool {
	return actorOf(caller).role.mayUse(tool)
}

// actor is who acts on articles, with the highest of their roles.
type actor struct {
	subject string
	role    Role // "" when the site knows none of the caller's roles
}

func actorOf(caller oauth.Caller) actor {
	acting := actor{subject: caller.Subject}
	for _, role := range ranks {
		if slices.Contains(caller.Roles, string(role)) {
			acting.role = role
		}
	}
	return acting
}

// sees is the rule that visibleTo repeats in SQL.
func (a actor) sees(article *Article) bool {
	switch a.role {
	case Editor:
		return true
	case Author:
		return article.State == Published || article.Author == a.subject
	case Reader:
		return article.State == Published
	}
	return false
}

// checkRevise lets editors change everything and authors their own drafts.
func (a actor) checkRevise(article *Article) error {
	ownDraft := article.State == Draft && article.Author == a.subject
	if a.role == Editor || a.role == Author && ownDraft {
		return nil
	}
	return refuse("%q is %s and was written by %s; only an editor may change it now", article.Slug, article.State, article.Author)
}
