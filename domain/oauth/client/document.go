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

	// DocumentStaleFor is how long a metadata document serves for authorization requests after the
	// last successful check, while its host cannot be reached.
	DocumentStaleFor = 30 * 24 * time.Hour

	// KeysStaleFor is how long a key set, or the document of a connected client, serves after it
	// has expired. It is short, because the client may have withdrawn a stolen key.
	KeysStaleFor = time.Hour
)

// Document is the metadata document with which a person last approved a client.
type Document struct {
	URL       string
	Body      []byte
	CheckedAt time.Time // when it was last fetched or revalidated before that approval
}

// ForgetAfter returns the time after which the document is not used any more, even if its host
// cannot be reached.
func (d Document) ForgetAfter() time.Time { return d.CheckedAt.Add(DocumentStaleFor) }

// DocumentStatus is the error of a response with a status other than 200.
type DocumentStatus int

func (s DocumentStatus) Error() string {
	return fmt.Sprintf("the status of the response is %d", int(s))
}

// IsOutage reports whether a failed fetch says nothing about the client: the host was unreachable,
// failed or refused requests, or this server had too many fetches. An address that is not public is
// not an outage, because the client is responsible for the DNS entries of its host.
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

	// SaveClientDocument stores the document in place of the one at its URL. If the store then has
	// more than MaxDocuments, it deletes those whose CheckedAt is earliest.
	SaveClientDocument(ctx context.Context, document Document) error

	// DeleteClientDocument deletes the document at the URL, if there is one.
	DeleteClientDocument(ctx context.Context, url string) error
}

// Directory finds the metadata document of a client. If a cached document does not list a nonempty
// redirectURI, a Directory fetches it again, at most once a minute. In an outage it may return the
// last good document, with a CheckFailure. Its errors are the refusals of Rules.NewMetadata,
// ErrUnreachable, ErrNoDocument, ErrMalformed and ErrBudget (RetryableAfter if the wait is known).
type Directory interface {
	Client(ctx context.Context, id oauth.ClientID, redirectURI string) (*Metadata, error)
}

// Keeper is a Directory that stores the documents of approved clients.
type Keeper interface {
	Directory
	// Keep stores the document of a client that a person has just approved.
	Keep(ctx context.Context, id oauth.ClientID)
	// Connected returns the document of a client that has a grant. In an outage it returns a cached
	// document until KeysStaleFor after its expiry.
	Connected(ctx context.Context, id oauth.ClientID) (*Metadata, error)
}

// KeyDirectory finds the keys at a client's jwks_uri. If a cached set lacks the wanted key, it
// fetches the set again, at most once a minute. Its errors are those of Directory.
type KeyDirectory interface {
	KeySet(ctx context.Context, at oauth.ClientID, wanted KeyReference) (KeySet, error)
}

// AssertionReader verifies the signature of an assertion with the key that keyOf finds by the
// header of the JWT. It returns the errors of keyOf, and ErrBadAssertion for a malformed JWT, an
// algorithm that is not in AssertionAlgorithms, a key that does not fit, or a wrong signature.
type AssertionReader interface {
	ReadAssertion(assertion string, keyOf func(KeyReference) (Key, error)) (Assertion, error)
}

// Sentinels of the ports, which adapters wrap.
var (
	ErrBadAssertion = errors.New("oauth: client assertion is malformed or wrongly signed")
	ErrUnreachable  = errors.New("oauth: fetch the client metadata document")
	ErrNoDocument   = fmt.Errorf("%w: the response is not a document", ErrUnreachable)
	ErrAddress      = errors.New("the address is refused") // an error that wraps it wraps ErrUnreachable, too
	ErrMalformed    = errors.New("oauth: client metadata document is not one strict JSON object")
	ErrBudget       = errors.New("oauth: too many client metadata fetches")
)

// temporary is an error with the wait after which a retry can succeed.
type temporary struct {
	error
	wait time.Duration
}

func (e *temporary) Unwrap() error { return e.error }

// RetryableAfter returns err with the wait after which a retry can succeed.
func RetryableAfter(wait time.Duration, err error) error { return &temporary{err, wait} }

// WaitOf returns the wait of RetryableAfter, 0 without one.
func WaitOf(err error) time.Duration {
	if known, ok := errors.AsType[*temporary](err); ok {
		return known.wait
	}
	return 0
}

// aboutClient is a refusal with the host of the client, for the error page.
type aboutClient struct {
	error
	host string
}

func (e *aboutClient) Unwrap() error { return e.error }

// WithHost returns err with the host of a well-formed client_id, and nil for nil.
func WithHost(id oauth.ClientID, err error) error {
	if err == nil {
		return nil
	}
	return &aboutClient{err, id.Host()}
}

// HostOf returns the client host of WithHost, "" without one.
func HostOf(err error) string {
	if about, ok := errors.AsType[*aboutClient](err); ok {
		return about.host
	}
	return ""
}
