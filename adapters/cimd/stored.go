package cimd

import (
	"context"
	"errors"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// storeTimeout bounds a write to the store.
const storeTimeout = 5 * time.Second

// cached returns the document in memory, or else the one in the store, nil if there is none.
func (c *fetchCache[T]) cached(ctx context.Context, at oauth.ClientID) *entry[T] {
	if known, _ := c.entries.get(at.String()); known != nil {
		return known
	}
	loaded := c.load(ctx, at)
	if loaded == nil || loaded.Withdrawn() {
		return nil
	}
	return c.keepLoaded(ctx, at, loaded)
}

// keepLoaded keeps a document of the store in memory, unless there is one meanwhile.
func (c *fetchCache[T]) keepLoaded(ctx context.Context, at oauth.ClientID, loaded *entry[T]) *entry[T] {
	return c.entries.addMissing(at.String(), loaded, oauth.RequesterFrom(ctx).Network())
}

// newest returns the newest version in memory and in the store, where another replica may have put
// it, and keeps it in memory. It returns nil if there is none, or if the newest is that the client
// has withdrawn the document.
func (c *fetchCache[T]) newest(ctx context.Context, at oauth.ClientID) *entry[T] {
	known, _ := c.entries.get(at.String())
	loaded := c.load(ctx, at)
	switch {
	case loaded == nil, known != nil && !loaded.CheckedAt.After(known.CheckedAt):
		return known
	case loaded.Withdrawn():
		c.entries.forget(at.String())
		return nil
	case known == nil:
		return c.keepLoaded(ctx, at, loaded)
	}
	c.entries.replace(at.String(), known, loaded)
	return loaded
}

// load reads the document in the store, nil if there is none. It ignores one that the rules do not
// allow any more.
func (c *fetchCache[T]) load(ctx context.Context, at oauth.ClientID) *entry[T] {
	d := c.directory
	if d.options.Store == nil {
		return nil
	}
	document, err := d.options.Store.ClientDocument(ctx, oauth.DocumentDigest(c.kind, at.String()))
	if errors.Is(err, oauth.ErrNotFound) {
		return nil
	}
	if err != nil {
		d.options.Logger.WarnContext(ctx, "cannot read a client's document in the store", "url", at.String(),
			"error", err)
		return nil
	}
	if document.Withdrawn() {
		return &entry[T]{ClientDocument: document, stored: true}
	}
	value, err := c.parse(ctx, at, document.Body)
	if err != nil {
		d.options.Logger.InfoContext(ctx, "stored document of a client is not used", "url", at.String(), "error", err)
		return nil
	}
	return &entry[T]{ClientDocument: document, value: value, stored: true}
}

// saveIfInUse writes the fetched document to the store if an earlier version is there or the client
// is in use, and returns it. Documents of other clients are not stored, so that anonymous requests
// add no rows.
func (c *fetchCache[T]) saveIfInUse(ctx context.Context, at oauth.ClientID, latest, fetched *entry[T]) *entry[T] {
	if latest != nil && latest.stored || c.entries.isInUse(at.String()) {
		return c.save(ctx, fetched, oauth.Fingerprint{})
	}
	return fetched
}

// save writes the document to the store, and returns it with the result.
func (c *fetchCache[T]) save(ctx context.Context, e *entry[T], owner oauth.Fingerprint) *entry[T] {
	store := c.directory.options.Store
	if store == nil {
		return e
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	saved := *e
	saved.Owner, saved.stored = owner, true
	if err := store.SaveClientDocument(ctx, saved.ClientDocument); err != nil {
		c.directory.options.Logger.WarnContext(ctx, "cannot store a client's document", "url", e.URL, "error", err)
		return e
	}
	return &saved
}

// keep marks the document as one of a client in use, and stores it.
func (c *fetchCache[T]) keep(at, id oauth.ClientID, by oauth.Fingerprint) {
	c.entries.keep(at.String(), ownerOf(id, by))
	if known, _ := c.entries.get(at.String()); known != nil && !known.stored {
		c.entries.replace(at.String(), known, c.save(context.Background(), known, by))
	}
}

// withdraw forgets a document that its client has withdrawn. If a version of it is stored, the mark
// replaces it there for the other replicas.
func (c *fetchCache[T]) withdraw(ctx context.Context, at oauth.ClientID) {
	c.entries.forget(at.String())
	if loaded := c.load(ctx, at); loaded != nil && !loaded.Withdrawn() {
		now := c.directory.options.Now()
		c.save(ctx, &entry[T]{ClientDocument: oauth.ClientDocument{
			Kind:       c.kind,
			URL:        at.String(),
			CheckedAt:  now,
			FreshUntil: now,
		}}, oauth.Fingerprint{})
	}
}
