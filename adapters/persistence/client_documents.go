package persistence

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ oauth.ClientDocumentStore = (*Store)(nil)

// clientDocumentRow is an oauth.ClientDocument.
type clientDocumentRow struct {
	Digest       []byte `gorm:"primaryKey"`
	Kind         string
	URL          string
	Owner        []byte
	Body         []byte
	ETag         string `gorm:"column:etag"`
	LastModified string
	CheckedAt    time.Time `gorm:"serializer:pasteport_millis"`
	FreshUntil   time.Time `gorm:"serializer:pasteport_millis"`
	ForgetAfter  time.Time `gorm:"serializer:pasteport_millis"`
}

// TableName implements GORM's Tabler.
func (clientDocumentRow) TableName() string { return "client_documents" }

func newClientDocumentRow(d oauth.ClientDocument) clientDocumentRow {
	digest := d.Digest()
	var owner []byte
	if d.Owner != (oauth.Fingerprint{}) {
		owner = d.Owner[:]
	}
	return clientDocumentRow{
		Digest:       digest[:],
		Kind:         string(d.Kind),
		URL:          d.URL,
		Owner:        owner,
		Body:         d.Body,
		ETag:         d.ETag,
		LastModified: d.LastModified,
		CheckedAt:    d.CheckedAt,
		FreshUntil:   d.FreshUntil,
		ForgetAfter:  d.ForgetAfter(),
	}
}

func (r clientDocumentRow) restore() oauth.ClientDocument {
	var owner oauth.Fingerprint
	copy(owner[:], r.Owner)
	return oauth.ClientDocument{
		Kind:         oauth.DocumentKind(r.Kind),
		URL:          r.URL,
		Owner:        owner,
		Body:         r.Body,
		ETag:         r.ETag,
		LastModified: r.LastModified,
		CheckedAt:    r.CheckedAt,
		FreshUntil:   r.FreshUntil,
	}
}

// ClientDocument implements oauth.ClientDocumentStore.
func (s *Store) ClientDocument(ctx context.Context, digest oauth.Digest) (oauth.ClientDocument, error) {
	ctx, done := s.detached(ctx)
	defer done()
	var row clientDocumentRow
	err := s.reader.WithContext(ctx).Take(&row, "digest = ?", digest[:]).Error
	return row.restore(), failed("reading a client's document", err)
}

// SaveClientDocument implements oauth.ClientDocumentStore.
func (s *Store) SaveClientDocument(ctx context.Context, document oauth.ClientDocument) error {
	row := newClientDocumentRow(document)
	return s.changeAll(ctx, func(tx *gorm.DB) error {
		var known []clientDocumentRow
		if err := s.engine.locking(tx).Find(&known, "digest = ?", row.Digest).Error; err != nil {
			return failed("reading a client's document", err)
		}
		switch {
		case len(known) == 0:
			return s.addClientDocument(tx, &row)
		case known[0].CheckedAt.After(row.CheckedAt):
			return nil
		}
		row.Owner = known[0].Owner
		return failed("storing a client's document", tx.Save(&row).Error)
	})
}

// addClientDocument makes room first, because the limits are for documents and not for versions of
// them.
func (s *Store) addClientDocument(tx *gorm.DB, row *clientDocumentRow) error {
	if row.Owner != nil {
		if err := deleteOldestDocuments(tx.Where("owner = ?", row.Owner),
			oauth.MaxClientDocumentsPerOwner-1); err != nil {
			return failed("deleting the oldest documents of an owner", err)
		}
	}
	if err := deleteOldestDocuments(tx, oauth.MaxClientDocuments-1); err != nil {
		return failed("deleting the oldest documents of clients", err)
	}
	return overtaken(tx.Create(row).Error, "storing a client's document")
}

// deleteOldestDocuments leaves the given number of the documents, those with the latest checked_at.
func deleteOldestDocuments(documents *gorm.DB, left int) error {
	documents = documents.Session(&gorm.Session{})
	var all int64
	if err := documents.Model(&clientDocumentRow{}).Count(&all).Error; err != nil || int(all) <= left {
		return err
	}
	var oldest [][]byte
	err := documents.Model(&clientDocumentRow{}).Order("checked_at").Limit(int(all)-left).Pluck("digest", &oldest).Error
	if err != nil {
		return err
	}
	return documents.Delete(&clientDocumentRow{}, "digest IN ?", oldest).Error
}

// ClientDocuments implements oauth.ClientDocumentStore.
func (s *Store) ClientDocuments(ctx context.Context) (documents []oauth.ClientDocument, err error) {
	var rows []clientDocumentRow
	err = s.reader.WithContext(ctx).Order("url, kind").Find(&rows).Error
	for _, row := range rows {
		documents = append(documents, row.restore())
	}
	return documents, failed("listing the documents of clients", err)
}
