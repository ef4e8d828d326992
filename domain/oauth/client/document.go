package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	// MaxDocuments is the maximum number of documents in a DocumentStore.
	MaxDocuments = 2000

	// DocumentStaleFor is how long a metadata document serves after the last successful check,
	// while its host cannot be reached.
	DocumentStaleFor = 30 * 24 * time.Hour

	// KeysStaleFor is how long a key set serves after it has expired. It is short, because a client
	// may have withdrawn a stolen key.
	KeysStaleFor = time.Hour
)

// Document is the metadata document of a client as it was when a person approved the client.
type Document struct {
	URL       string
	Body      []byte
	CheckedAt time.Time // when it was last fetched or revalidated
}

// ForgetAfter returns the time after which the document is not used any more, even if its host
// cannot be reached.
func (d Document) ForgetAfter() time.Time { return d.CheckedAt.Add(DocumentStaleFor) }

// DocumentStatus is the error of a response with a status other than 200.
type DocumentStatus int

func (s DocumentStatus) Error() string {
	return fmt.Sprintf("the status of the response is %d", int(s))
}

// IsOutage reports whether a failed fetch says nothing about the client: the host was
// unreachable, failed or refused requests, or this server had no slot for the fetch. A host that
// resolves to an address that is not public is not among them, because its DNS entries are the
// client's.
func IsOutage(err error) bool {
	var status DocumentStatus
	switch {
	case errors.Is(err, ErrAddress):
		return false
	case errors.Is(err, ErrBudget):
		return true
	case errors.As(err, &status):
		return status == 403 || status == 408 || status == 429 || status >= 500
	}
	return errors.Is(err, ErrUnreachable) && !errors.Is(err, ErrNoDocument)
}

// IsWithdrawal reports whether a failed fetch shows that the client has withdrawn its
// document: it was removed (404, 410), or is not valid any more.
func IsWithdrawal(err error) bool {
	var status DocumentStatus
	if errors.As(err, &status) {
		return status == 404 || status == 410
	}
	_, refused := oauth.KindOf(err)
	return refused || errors.Is(err, ErrMalformed)
}

// DocumentStore is a Store that keeps the metadata documents of approved clients, so that
// they survive a restart. DeleteExpired deletes those whose ForgetAfter has passed.
type DocumentStore interface {
	// ClientDocument returns the document at the URL, or oauth.ErrNotFound.
	ClientDocument(ctx context.Context, url string) (Document, error)

	// SaveClientDocument stores the document in place of the one at its URL. Of more than
	// MaxDocuments it deletes those whose CheckedAt is earliest.
	SaveClientDocument(ctx context.Context, document Document) error

	// DeleteClientDocument deletes the document at the URL, if there is one.
	DeleteClientDocument(ctx context.Context, url string) error
}
