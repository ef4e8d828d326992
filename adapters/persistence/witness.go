package persistence

import (
	"bytes"
	"context"
	"slices"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
)

// witnessRow is the print of the newest server secret that a replica has sealed with. There is one.
type witnessRow struct {
	ID    int `gorm:"primaryKey;autoIncrement:false"`
	Print []byte
}

// TableName implements GORM's Tabler.
func (witnessRow) TableName() string { return "secret_witness" }

const onlyWitness = 1

// Agree implements oauth.SecretWitness. A file has its secret beside it, so nobody else can bring another one.
func (s *Store) Agree(ctx context.Context, prints []oauth.Fingerprint) error {
	if !s.engine.server || len(prints) == 0 {
		return nil
	}
	return s.transaction(ctx, func(tx *gorm.DB) error {
		known, err := witnesses(s.engine.locking(tx))
		if err != nil {
			return err
		}
		newest := witnessRow{onlyWitness, prints[0][:]}
		if len(known) == 0 {
			return overtaken(tx.Create(&newest).Error, "noting the server secret")
		}
		switch {
		case !known[0].isAmong(prints):
			return oauth.ErrOtherSecret
		case bytes.Equal(known[0].Print, newest.Print):
			return nil
		}
		return failed("noting the server secret", tx.Save(&newest).Error)
	})
}

// witnesses are none before the first replica has started.
func witnesses(db *gorm.DB) (known []witnessRow, err error) {
	err = db.Find(&known).Error
	return known, failed("reading which server secret other replicas use", err)
}

func (w witnessRow) isAmong(prints []oauth.Fingerprint) bool {
	return slices.ContainsFunc(prints, func(own oauth.Fingerprint) bool { return bytes.Equal(own[:], w.Print) })
}

// forgetWitness lets the next replica that starts bring any secret.
func forgetWitness(tx *gorm.DB) error {
	return failed("forgetting the server secret of other replicas", tx.Delete(&witnessRow{}, onlyWitness).Error)
}
