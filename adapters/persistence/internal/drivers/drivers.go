// Package drivers is the registry of the drivers for database servers. Packages postgres and mysql
// register a Driver when they are imported, as the drivers of database/sql do, so that a program
// whose store is a file links none.
package drivers

import (
	"database/sql"
	"net/url"

	"gorm.io/gorm"
)

// Driver opens and explains one kind of database server.
type Driver struct {
	// Open returns a pool without connecting. It fails for an address that it cannot parse.
	Open func(address *url.URL) (*sql.DB, gorm.Dialector, error)
	// Code returns the SQLSTATE of an error, or its number where that is more precise; "" for an
	// error of another origin.
	Code func(err error) string
}

// ByScheme has the drivers by the schemes of their addresses. Only their init functions write it.
var ByScheme = map[string]Driver{}

// Code returns the code of an error of any registered driver; "" for any other error.
func Code(err error) string {
	for _, driver := range ByScheme {
		if code := driver.Code(err); code != "" {
			return code
		}
	}
	return ""
}
