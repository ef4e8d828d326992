package cimd

import (
	"context"
	"errors"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// storeTimeout bounds a write to the store.
const storeTimeout = 5 * time.Second

// cached returns the document in memory, or else the one in the store (C58), nil if there is none.
func (c *fetchCache[T]) cached(ctx context.Context, at oauth.ClientID) *entry[T] {
	known, _ := c.entries.get(at.String())
	if known != nil {
		return known
	}
	loaded, err := c.load(ctx, at)
	if err != nil {
		c.directory.options.Logger.WarnContext(ctx, "cannot read a client's document in the store", "url", at.String(), "error", err)
	}
	if loaded == nil {
		return nil
	}
	return c.entries.addMissing(at.String(), loaded, target{at: at, requester: oauth.RequesterFrom(ctx)}.network())
}

// load reads the document in the store, nil if there is none. It ignores one that the rules do not allow any more.
func (c *fetchCache[T]) load(ctx context.Context, at oauth.ClientID) (*entry[T], error) {
	store := c.directory.options.Store
	if store == nil {
		return nil, nil
	}
	document, err := store.ClientDocument(ctx, oauth.DocumentDigest(c.kind, at.String()))
	if errors.Is(err, oauth.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	value, err := c.parse(ctx, at, document.Body)
	if err != nil {
		c.directory.options.Logger.InfoContext(ctx, "stored document of a client is not used", "url", at.String(), "error", err)
		return nil, nil
	}
	return &entry[T]{
		value: value, body: document.Body, etag: document.ETag, lastModified: document.LastModified,
		checkedAt: document.CheckedAt, freshUntil: document.FreshUntil, stored: true,
	}, nil
}

// lastGood returns the newest valid document, nil if there is none. One that was stored and is not any more was discarded by another replica.
func (c *fetchCache[T]) lastGood(ctx context.Context, at oauth.ClientID) *entry[T] {
	known, _ := c.entries.get(at.String())
	if known != nil && !known.stored {
		return known
	}
	loaded, err := c.load(ctx, at)
	switch {
	case err != nil:
		return known
	case loaded == nil:
		c.entries.forget(at.String())
		return nil
	case known == nil || loaded.checkedAt.After(known.checkedAt):
		return loaded
	}
	return known
}

// stored returns the fetched document after writing it to the store, if the store has an earlier version or the client is in use. Documents of other
// clients are not stored, so that anonymous requests write nothing (A34).
func (c *fetchCache[T]) stored(ctx context.Context, at oauth.ClientID, latest, fetched *entry[T]) *entry[T] {
	if latest != nil && latest.stored || c.entries.isInUse(at.String()) {
		return c.save(ctx, at, fetched)
	}
	return fetched
}

// save writes the document to the store.
func (c *fetchCache[T]) save(ctx context.Context, at oauth.ClientID, e *entry[T]) *entry[T] {
	store := c.directory.options.Store
	if store == nil {
		return e
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := store.SaveClientDocument(ctx, oauth.ClientDocument{
		Kind: c.kind, URL: at.String(), Body: e.body, ETag: e.etag, LastModified: e.lastModified, CheckedAt: e.checkedAt, FreshUntil: e.freshUntil,
	})
	if err != nil {
		c.directory.options.Logger.WarnContext(ctx, "cannot store a client's document", "url", at.String(), "error", err)
		return e
	}
	saved := *e
	saved.stored = true
	return &saved
}

// keep marks the document as one of a client in use, and stores it.
func (c *fetchCache[T]) keep(at oauth.ClientID, owner string) {
	c.entries.keep(at.String(), owner)
	if known, _ := c.entries.get(at.String()); known != nil && !known.stored {
		c.entries.replace(at.String(), known, c.save(context.Background(), at, known))
	}
}

// discard forgets a document that its client has withdrawn (C57).
func (c *fetchCache[T]) discard(ctx context.Context, at oauth.ClientID, latest *entry[T]) {
	c.entries.forget(at.String())
	if latest == nil || !latest.stored {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := c.directory.options.Store.DeleteClientDocument(ctx, oauth.DocumentDigest(c.kind, at.String())); err != nil {
		c.directory.options.Logger.WarnContext(ctx, "cannot delete a withdrawn document of a client", "url", at.String(), "error", err)
	}
}
