package cimd

import (
	"context"
	"errors"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// storeTimeout bounds a write to the store.
const storeTimeout = 5 * time.Second

// newest returns the newest version in memory and in the store, where another replica may have put
// it, and keeps it in memory. It returns nil if there is none, or if the newest is that the client
// has withdrawn the document.
func (c *fetchCache[T]) newest(ctx context.Context, at oauth.ClientID, known *entry[T]) *entry[T] {
	loaded := c.load(ctx, at)
	switch {
	case loaded == nil, known != nil && !loaded.CheckedAt.After(known.CheckedAt):
		return known
	case loaded.Withdrawn():
		c.records.forget(at.String())
		return nil
	}
	c.records.replace(at.String(), known, loaded, oauth.RequesterFrom(ctx).Network())
	return loaded
}

// load reads the document in the store, nil if there is none. It ignores one that the rules do not
// allow any more.
func (c *fetchCache[T]) load(ctx context.Context, at oauth.ClientID) *entry[T] {
	o := c.directory.options
	if o.Store == nil {
		return nil
	}
	document, err := o.Store.ClientDocument(ctx, oauth.DocumentDigest(c.kind, at.String()))
	if errors.Is(err, oauth.ErrNotFound) {
		return nil
	}
	if err != nil {
		o.Logger.WarnContext(ctx, "cannot read a client's document in the store", "url", at.String(), "error", err)
		return nil
	}
	loaded := &entry[T]{ClientDocument: document, stored: true}
	if document.Withdrawn() {
		return loaded
	}
	if loaded.value, err = c.parse(ctx, at, document.Body); err != nil {
		o.Logger.InfoContext(ctx, "stored document of a client is not used", "url", at.String(), "error", err)
		return nil
	}
	return loaded
}

// save writes the document to the store. It returns it marked as stored, or as it was after a
// failure.
func (c *fetchCache[T]) save(ctx context.Context, e *entry[T], owner oauth.Fingerprint) *entry[T] {
	o := c.directory.options
	if o.Store == nil {
		return e
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	saved := *e
	saved.Owner, saved.stored = owner, true
	if err := o.Store.SaveClientDocument(ctx, saved.ClientDocument); err != nil {
		o.Logger.WarnContext(ctx, "cannot store a client's document", "url", e.URL, "error", err)
		return e
	}
	return &saved
}

// keep marks the document as one of a client in use, and stores it.
func (c *fetchCache[T]) keep(at, id oauth.ClientID, by oauth.Fingerprint) *entry[T] {
	c.records.keep(at.String(), ownerOf(id, by))
	known, _ := c.records.get(at.String())
	if known != nil && !known.stored {
		saved := c.save(context.Background(), known, by)
		c.records.replace(at.String(), known, saved, oauth.Requester{}.Network())
	}
	return known
}

// withdraw forgets a document that its client has withdrawn. If a version of it is stored, the mark
// replaces it there for the other replicas.
func (c *fetchCache[T]) withdraw(ctx context.Context, at oauth.ClientID) {
	c.records.forget(at.String())
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
