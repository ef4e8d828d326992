package maintenance

import (
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"
)

// Check is the result of one check.
type Check struct {
	Name    string `json:"check"`
	Found   string `json:"found"`
	Problem string `json:"problem,omitempty"` // and its remedy; "" when there is none
}

// NewCheck returns a Check with the problem err, or with the finding when err is nil.
func NewCheck(name, found string, err error) Check {
	if err != nil {
		return Check{Name: name, Problem: err.Error()}
	}
	return Check{Name: name, Found: found}
}

// clockLimit keeps the clocks of two machines, each compared with that of their database, within
// the overlap of two queries for revocations.
const clockLimit = 2 * time.Second

// CheckClock compares this machine's clock with the one of a server. query returns the server's
// time in milliseconds; the time that it takes does not count as a difference.
func CheckClock(db *gorm.DB, query string) Check {
	var there int64
	before := time.Now()
	if err := db.Raw(query).Scan(&there).Error; err != nil {
		return NewCheck("clock", "", fmt.Errorf("asking the server for its time: %w", err))
	}
	apart := max(before.Sub(time.UnixMilli(there)), time.Until(time.UnixMilli(there)), 0).Round(time.Millisecond)
	if apart > clockLimit {
		return NewCheck("clock", "",
			fmt.Errorf("this machine's clock and the database server's are %s apart: let both follow the same time "+
				"servers (NTP)", apart))
	}
	return NewCheck("clock", fmt.Sprintf("within %s of the database server's", max(apart, time.Millisecond)), nil)
}

// CheckFile lets SQLite check its file. explain adds a remedy to SQLite's errors.
func CheckFile(db *gorm.DB, explain func(error) error) Check {
	var results []string
	err := explain(db.Raw("PRAGMA integrity_check").Scan(&results).Error)
	if err == nil && !slices.Equal(results, []string{"ok"}) {
		err = fmt.Errorf("the file is damaged, restore it: %q", results)
	}
	return NewCheck("file", "undamaged", err)
}
