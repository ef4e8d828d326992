package demosite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"gorm.io/gorm"
)

const (
	defaultLimit = 20
	maxLimit     = 100
)

// pageRequest selects one page of articles.
type pageRequest struct {
	State  State  `json:"state,omitempty" jsonschema:"only articles in this state: draft, published or archived; default: every state"`
	Limit  int    `json:"limit,omitempty" jsonschema:"maximum number of articles, 1 to 100; default: 20"`
	Cursor string `json:"cursor,omitempty" jsonschema:"nextCursor of the previous page; default: the first page"`
}

// page holds articles without their bodies.
type page struct {
	Articles   []*Article `json:"articles"`
	NextCursor string     `json:"nextCursor,omitempty" jsonschema:"cursor for the next page; absent on the last page"`
}

// add stores a new article with a unique slug.
func (s *Site) add(ctx context.Context, article *Article) error {
	err := s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return insert(tx, article) })
	if err != nil {
		return fmt.Errorf("adding an article: %w", err)
	}
	return nil
}

func insert(tx *gorm.DB, article *Article) (err error) {
	if article.Slug, err = freeSlug(tx, slugOf(article.Title)); err != nil {
		return err
	}
	return tx.Create(article).Error
}

// freeSlug returns the first unused slug of wanted, wanted-2, wanted-3 …
func freeSlug(tx *gorm.DB, wanted string) (string, error) {
	var taken []string
	err := tx.Model(&Article{}).Where("slug = ? OR slug GLOB ?", wanted, wanted+"-*").Pluck("slug", &taken).Error
	free := wanted
	for n := 2; slices.Contains(taken, free); n++ {
		free = wanted + "-" + strconv.Itoa(n)
	}
	return free, err
}

// find returns the article if the actor may see it. The error does not reveal whether the article
// exists.
func (s *Site) find(ctx context.Context, by actor, slug string) (*Article, error) {
	return find(s.db.WithContext(ctx), by, slug)
}

func find(tx *gorm.DB, by actor, slug string) (*Article, error) {
	article := &Article{}
	err := tx.Where("slug = ?", slug).Take(article).Error
	switch {
	case errors.Is(err, gorm.ErrRecordNotFound), err == nil && !by.sees(article):
		return nil, refuse("there is no article %q; list_articles lists the articles that you may see", slug)
	case err != nil:
		return nil, fmt.Errorf("finding an article: %w", err)
	}
	return article, nil
}

// change applies verb to the article and stores the result in one transaction. It stores nothing if
// verb returns an error.
func (s *Site) change(ctx context.Context, by actor, slug string, verb func(*Article) error) (article *Article,
	err error) {
	err = s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) (err error) {
		if article, err = find(tx, by, slug); err != nil {
			return err
		}
		if err := verb(article); err != nil {
			return err
		}
		if article.deleted {
			return tx.Delete(article).Error
		}
		return tx.Save(article).Error
	})
	if err != nil {
		return nil, fmt.Errorf("changing an article: %w", err)
	}
	return article, nil
}

// list returns a page of the articles that the actor may see, newest first.
func (s *Site) list(ctx context.Context, by actor, wanted pageRequest) (page, error) {
	query, err := wanted.apply(visibleTo(by, s.db.WithContext(ctx)))
	if err != nil {
		return page{}, err
	}
	limit := wanted.limit()
	found := page{Articles: []*Article{}}
	if err := query.Omit("body").Order("id DESC").Limit(limit + 1).Find(&found.Articles).Error; err != nil {
		return page{}, fmt.Errorf("listing articles: %w", err)
	}
	if len(found.Articles) > limit { // the extra article shows that there is another page
		found.Articles = found.Articles[:limit]
		found.NextCursor = strconv.FormatInt(found.Articles[limit-1].ID, 36)
	}
	return found, nil
}

func (p pageRequest) limit() int {
	if p.Limit == 0 {
		return defaultLimit
	}
	return p.Limit
}

// apply adds the conditions of the request to the query, or refuses an invalid request.
func (p pageRequest) apply(query *gorm.DB) (*gorm.DB, error) {
	if limit := p.limit(); limit < 1 || limit > maxLimit {
		return nil, refuse("limit must be 1 to %d", maxLimit)
	}
	switch p.State {
	case "":
	case Draft, Published, Archived:
		query = query.Where("state = ?", p.State)
	default:
		return nil, refuse("state must be draft, published or archived")
	}
	if p.Cursor == "" {
		return query, nil
	}
	last, err := strconv.ParseInt(p.Cursor, 36, 64)
	if err != nil {
		return nil, refuse("cursor must be the nextCursor of an earlier page")
	}
	return query.Where("id < ?", last), nil
}

// visibleTo is actor.sees in SQL.
func visibleTo(by actor, query *gorm.DB) *gorm.DB {
	switch by.role {
	case Editor:
		return query
	case Author:
		return query.Where("(state = ? OR author = ?)", Published, by.subject)
	case Reader:
		return query.Where("state = ?", Published)
	}
	return query.Where("FALSE")
}
