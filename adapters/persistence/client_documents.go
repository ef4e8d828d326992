package persistence

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ oauth.ClientDocumentStore = (*Store)(nil)

// clientDocumentRow is an oauth.ClientDocument.
type clientDocumentRow struct {
	Digest       []byte `gorm:"primaryKey"`
	Kind         string
	URL          string
	Body         []byte
	ETag         string `gorm:"column:etag"`
	LastModified string
	CheckedAt    time.Time `gorm:"serializer:pasteport_millis"`
	FreshUntil   time.Time `gorm:"serializer:pasteport_millis"`
	ForgetAfter  time.Time `gorm:"serializer:pasteport_millis"`
}

// TableName implements GORM's Tabler.
func (clientDocumentRow) TableName() string { return "client_documents" }

// Key implements maintenance.Row.
func (r clientDocumentRow) Key() (column string, value any) { return "digest", r.Digest }

func newClientDocumentRow(d oauth.ClientDocument) clientDocumentRow {
	digest := d.Digest()
	return clientDocumentRow{
		Digest: digest[:], Kind: string(d.Kind), URL: d.URL, Body: d.Body, ETag: d.ETag, LastModified: d.LastModified,
		CheckedAt: d.CheckedAt, FreshUntil: d.FreshUntil, ForgetAfter: d.ForgetAfter(),
	}
}

func (r clientDocumentRow) restore() oauth.ClientDocument {
	return oauth.ClientDocument{
		Kind: oauth.DocumentKind(r.Kind), URL: r.URL, Body: r.Body, ETag: r.ETag, LastModified: r.LastModified,
		CheckedAt: r.CheckedAt, FreshUntil: r.FreshUntil,
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
	return s.change(ctx, func(tx *sqlite.Tx) error {
		tx.WroteRow()
		if err := tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error; err != nil {
			return failed("storing a client's document", err)
		}
		return failed("deleting the oldest documents of clients", deleteOldestDocuments(tx.DB))
	})
}

// deleteOldestDocuments deletes the documents beyond MaxClientDocuments.
func deleteOldestDocuments(tx *gorm.DB) error {
	var all int64
	if err := tx.Model(&clientDocumentRow{}).Count(&all).Error; err != nil || all <= oauth.MaxClientDocuments {
		return err
	}
	var oldest [][]byte
	err := tx.Model(&clientDocumentRow{}).Order("checked_at").Limit(int(all-oauth.MaxClientDocuments)).Pluck("digest", &oldest).Error
	if err != nil {
		return err
	}
	return tx.Delete(&clientDocumentRow{}, "digest IN ?", oldest).Error
}

// DeleteClientDocument implements oauth.ClientDocumentStore.
func (s *Store) DeleteClientDocument(ctx context.Context, digest oauth.Digest) error {
	return s.change(ctx, func(tx *sqlite.Tx) error {
		tx.WroteRow()
		return failed("deleting a client's document", tx.Delete(&clientDocumentRow{}, "digest = ?", digest[:]).Error)
	})
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

// Clients implements oauth.ClientLister.
func (s *Store) Clients(ctx context.Context, now time.Time, limit int) (clients []oauth.ClientID, err error) {
	var ids []string
	err = s.reader.WithContext(ctx).Model(&grantRow{}).Where("ended_at IS NULL AND idle_end > ?", now.UnixMilli()).
		Group("client_id").Order("COUNT(*) DESC, client_id").Limit(limit).Pluck("client_id", &ids).Error
	for _, id := range ids {
		clients = append(clients, oauth.RestoreClientID(id))
	}
	return clients, failed("listing the clients", err)
}
