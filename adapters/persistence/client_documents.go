package persistence

import (
	"context"
	"crypto/sha256"
	"time"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth/client"
)

var _ client.DocumentStore = (*Store)(nil)

// clientDocumentRow is a client.Document. Its key is a digest, because a URL can be too long.
type clientDocumentRow struct {
	Digest      []byte `gorm:"primaryKey"`
	URL         string
	Body        []byte
	CheckedAt   time.Time `gorm:"serializer:pasteport_millis"`
	ForgetAfter time.Time `gorm:"serializer:pasteport_millis"`
}

func (clientDocumentRow) TableName() string { return "client_documents" }

func digestOf(url string) []byte {
	digest := sha256.Sum256([]byte(url))
	return digest[:]
}

func (r clientDocumentRow) restore() client.Document {
	return client.Document{URL: r.URL, Body: r.Body, CheckedAt: r.CheckedAt}
}

// ClientDocument implements client.DocumentStore.
func (s *Store) ClientDocument(ctx context.Context, url string) (client.Document, error) {
	ctx, done := s.detached(ctx)
	defer done()
	var row clientDocumentRow
	err := s.reader.WithContext(ctx).Take(&row, "digest = ?", digestOf(url)).Error
	return row.restore(), failed("reading a client's document", err)
}

// SaveClientDocument implements client.DocumentStore.
func (s *Store) SaveClientDocument(ctx context.Context, document client.Document) error {
	row := clientDocumentRow{
		Digest:      digestOf(document.URL),
		URL:         document.URL,
		Body:        document.Body,
		CheckedAt:   document.CheckedAt,
		ForgetAfter: document.ForgetAfter(),
	}
	return s.transaction(ctx, func(tx *gorm.DB) error {
		if err := tx.Save(&row).Error; err != nil {
			return overtaken(err, "storing a client's document")
		}
		var oldest [][]byte
		err := tx.Model(&clientDocumentRow{}).Order("checked_at DESC").Offset(client.MaxDocuments).
			Limit(deletedAtOnce).Pluck("digest", &oldest).Error
		if err == nil && len(oldest) > 0 {
			err = tx.Delete(&clientDocumentRow{}, "digest IN ?", oldest).Error
		}
		return failed("deleting the oldest documents of clients", err)
	})
}

// DeleteClientDocument implements client.DocumentStore.
func (s *Store) DeleteClientDocument(ctx context.Context, url string) error {
	return s.change(ctx, func(tx *gorm.DB) error {
		err := tx.Delete(&clientDocumentRow{}, "digest = ?", digestOf(url)).Error
		return failed("deleting a client's document", err)
	})
}

// ClientDocuments returns every document, in the order of their URLs.
func (s *Store) ClientDocuments(ctx context.Context) (documents []client.Document, err error) {
	var rows []clientDocumentRow
	err = s.reader.WithContext(ctx).Order("url").Find(&rows).Error
	for _, row := range rows {
		documents = append(documents, row.restore())
	}
	return documents, failed("listing the documents of clients", err)
}
