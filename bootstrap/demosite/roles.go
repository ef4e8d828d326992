package demosite

import (
	"slices"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Role is the role of an API token on the site.
type Role string

// The roles, lowest first; each includes the rights of the previous one.
const (
	Reader Role = "reader" // reads published articles
	Author Role = "author" // also writes drafts, and sees and changes their own drafts
	Editor Role = "editor" // may do everything with every article
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

// atLeast returns false for an unknown role.
func (r Role) atLeast(lowest Role) bool {
	rank := slices.Index(ranks, r)
	return rank >= 0 && rank >= slices.Index(ranks, lowest)
}

func (r Role) mayUse(tool string) bool {
	lowest, known := needed[tool]
	return known && r.atLeast(lowest)
}

// MayCall is the tool policy of the site: it reports whether the caller's roles allow the tool. The
// tool itself checks the article.
func (s *Site) MayCall(caller oauth.Caller, tool string) bool {
	return actorOf(caller).role.mayUse(tool)
}

// actor is the person of a request with the highest of their roles.
type actor struct {
	subject string
	role    Role // "" if all of the caller's roles are unknown
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

// sees reports whether the actor may read the article; visibleTo is the same rule in SQL.
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

// checkRevise allows editors to change every article, and authors their own drafts.
func (a actor) checkRevise(article *Article) error {
	ownDraft := article.State == Draft && article.Author == a.subject
	if a.role == Editor || a.role == Author && ownDraft {
		return nil
	}
	return refuse("%q is %s and was written by %s; only an editor may change it now", article.Slug, article.State,
		article.Author)
}
