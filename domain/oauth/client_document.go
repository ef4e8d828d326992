package oauth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// MaxClientDocuments is the maximum number of documents in a ClientDocumentStore.
	MaxClientDocuments = 2000

	// MetadataStaleFor is how long a metadata document serves after the last successful check,
	// while its host cannot be reached.
	MetadataStaleFor = 30 * 24 * time.Hour

	// KeysStaleFor is how long a key set serves after it has expired. It is short, because a client
	// may have withdrawn a stolen key.
	KeysStaleFor = time.Hour
)

// ClientDocument is the metadata document of a client as it was when a person approved the client.
type ClientDocument struct {
	URL       string
	Body      []byte
	CheckedAt time.Time // when it was last fetched or revalidated
}

// ForgetAfter returns the time after which the document is not used any more, even if its host
// cannot be reached.
func (d ClientDocument) ForgetAfter() time.Time { return d.CheckedAt.Add(MetadataStaleFor) }

// MetadataStatus is the error of a response with a status other than 200.
type MetadataStatus int

func (s MetadataStatus) Error() string {
	return fmt.Sprintf("the status of the response is %d", int(s))
}

// IsMetadataOutage reports whether a failed fetch says nothing about the client: the host was
// unreachable, failed or refused requests, or this server had no slot for the fetch. A host that
// resolves to an address that is not public is not among them, because its DNS entries are the
// client's.
func IsMetadataOutage(err error) bool {
	var status MetadataStatus
	switch {
	case errors.Is(err, ErrMetadataAddress):
		return false
	case errors.Is(err, ErrMetadataBudget):
		return true
	case errors.As(err, &status):
		return status == 403 || status == 408 || status == 429 || status >= 500
	}
	return errors.Is(err, ErrMetadataUnreachable) && !errors.Is(err, ErrMetadataNoDocument)
}

// IsMetadataWithdrawal reports whether a failed fetch shows that the client has withdrawn its
// document: it was removed (404, 410), or is not valid any more.
func IsMetadataWithdrawal(err error) bool {
	var status MetadataStatus
	if errors.As(err, &status) {
		return status == 404 || status == 410
	}
	_, refused := KindOf(err)
	return refused || errors.Is(err, ErrMetadataMalformed)
}

// ClientDocumentStore is a Store that keeps the metadata documents of approved clients, so that
// they survive a restart. DeleteExpired deletes those whose ForgetAfter has passed.
type ClientDocumentStore interface {
	// ClientDocument returns the document at the URL, or ErrNotFound.
	ClientDocument(ctx context.Context, url string) (ClientDocument, error)

	// SaveClientDocument stores the document in place of the one at its URL. Of more than
	// MaxClientDocuments it deletes those whose CheckedAt is earliest.
	SaveClientDocument(ctx context.Context, document ClientDocument) error

	// DeleteClientDocument deletes the document at the URL, if there is one.
	DeleteClientDocument(ctx context.Context, url string) error
}

// HostedClientsPath is the path, below the issuer, of the documents of HostedClients.
const HostedClientsPath = "/oauth/documents/"

// HostedClient is a client whose metadata document this server publishes, at the HostedClientsPath
// and Path, and uses without a fetch. It is a program on the person's computer, so all its redirect
// URIs are loopback URIs.
type HostedClient struct {
	Path         string // lower-case letters, digits and hyphens
	Name         string
	RedirectURIs []string
}

func (h HostedClient) metadata(issuer string) (*ClientMetadata, error) {
	id := RestoreClientID(issuer + HostedClientsPath + h.Path)
	redirects := make([]any, 0, len(h.RedirectURIs))
	for _, uri := range h.RedirectURIs {
		redirects = append(redirects, uri)
	}
	return NewClientMetadata(id, map[string]any{"client_id": id.raw, "client_name": h.Name, "redirect_uris": redirects},
		ClientMetadataRules{})
}

// hostedClients returns the HostedClients by their ids. checkHostedClients reports those that are
// not valid.
func (c Config) hostedClients() map[string]*ClientMetadata {
	hosted := map[string]*ClientMetadata{}
	for _, client := range c.HostedClients {
		if metadata, err := client.metadata(c.Issuer); err == nil {
			hosted[metadata.id.raw] = metadata
		}
	}
	return hosted
}

func (c Config) checkHostedClients() (found mistakes) {
	for _, client := range c.HostedClients {
		metadata, err := client.metadata(c.Issuer)
		switch {
		case client.Path == "" || strings.Trim(client.Path, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
			found.add("HostedClients", "has the path %q: write lower-case letters, digits and hyphens", client.Path)
		case err != nil:
			found.add("HostedClients", ": the client %q: %s", client.Path, refusalOf(err).Description)
		case metadata.ignoredEntries > 0 || slices.ContainsFunc(metadata.redirects, func(uri RedirectURI) bool {
			return !uri.Loopback()
		}):
			found.add("HostedClients", ": the client %q has a redirect URI that is not on loopback: write "+
				"http://127.0.0.1/ or http://localhost/ and a path", client.Path)
		}
	}
	if len(found) == 0 && len(c.hostedClients()) < len(c.HostedClients) {
		found.add("HostedClients", "has a path twice: keep one")
	}
	return found
}

// Hosted returns the client if it is a HostedClient, nil if it is not.
func (s *Settings) Hosted(id ClientID) *ClientMetadata { return s.hosted[id.raw] }

// HostedClients returns the HostedClients in the order of their ids.
func (s *Settings) HostedClients() (clients []*ClientMetadata) {
	for _, id := range s.ClientID.Hosted {
		clients = append(clients, s.hosted[id])
	}
	return clients
}

// IsPublishedHere reports whether this server has the metadata of the client, so that it is never
// fetched.
func (s *Settings) IsPublishedHere(id ClientID) bool {
	return s.IsSelfRegistered(id) || s.Hosted(id) != nil
}
