package persistence

import (
	"errors"
	"fmt"

	"gorm.io/gorm"
)

const mysqlName = "MySQL"

var mysqlEngine = engine{
	name: mysqlName, driver: "github.com/pasteport/pasteport/adapters/persistence/mysql", server: true, statements: true,
	schema: []string{
		"{id}", "VARCHAR(64)", "{text}", "TEXT", "{word}", "VARCHAR(64)", "{digest}", "VARBINARY(32)", "{bytes}", "MEDIUMBLOB", "{integer}", "BIGINT",
		"{serial}", "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY",
		"{rows}", "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin", "{keyed}", "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
	},
	clock:      "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000",
	countAgain: countAgainMySQL,
	find:       findGrant,
	join:       "JOIN",
	drop:       "DELETE secrets FROM secrets JOIN (%s) AS batch USING (digest)", // it would read the whole table for a list
	lock: func(tx *gorm.DB) error {
		var got int
		err := tx.Raw("SELECT GET_LOCK('pasteport_migrations', ?)", int(migrationLimit.Seconds())).Scan(&got).Error
		if err == nil && got != 1 {
			err = fmt.Errorf("nobody else was done within %s", migrationLimit)
		}
		return err
	},
	unlock: func(tx *gorm.DB) error {
		return failed("letting other replicas migrate the schema", tx.Exec("DO RELEASE_LOCK('pasteport_migrations')").Error)
	},
	free: func(tx *gorm.DB) error {
		var keys []string
		err := tx.Raw("SELECT constraint_name FROM information_schema.referential_constraints WHERE constraint_schema = DATABASE() AND table_name = 'secrets'").
			Scan(&keys).Error
		for _, key := range keys { // which the server has named
			err = errors.Join(err, tx.Exec("ALTER TABLE secrets DROP FOREIGN KEY `"+key+"`").Error)
		}
		return errors.Join(err, executeAll(tx, engine{}, `ALTER TABLE secrets RENAME INDEX secrets_by_grant TO secrets_by_wrap`)) // it knows no index of some rows
	},
	durable: func(db *gorm.DB) error {
		var flushed int
		if err := db.Raw("SELECT @@GLOBAL.innodb_flush_log_at_trx_commit").Scan(&flushed).Error; err != nil {
			return failed("checking innodb_flush_log_at_trx_commit", err)
		}
		if flushed != 1 {
			return fmt.Errorf("MySQL runs with innodb_flush_log_at_trx_commit=%d: a power failure would bring revoked tokens back: set it to 1", flushed)
		}
		var logged, synced int
		if err := db.Raw("SELECT @@GLOBAL.log_bin, @@GLOBAL.sync_binlog").Row().Scan(&logged, &synced); err != nil {
			return failed("checking sync_binlog", err)
		}
		if logged == 1 && synced != 1 {
			return fmt.Errorf("MySQL runs with a binary log and sync_binlog=%d: a power failure would bring revoked tokens back: set it to 1", synced)
		}
		return nil
	},
}
