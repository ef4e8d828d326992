// Package drivers is the registry of the drivers for database servers. Packages postgres and mysql
// register a Driver when they are imported, as the drivers of database/sql do, so that a program
// whose store is a file links none.
package drivers

import (
	"database/sql"
	"net/url"
	"sync"

	"gorm.io/gorm"
)

// Driver opens and explains one kind of database server.
type Driver struct {
	// Open returns a pool for the address without connecting. It fails for an address that it
	// cannot parse.
	Open func(address *url.URL) (*sql.DB, gorm.Dialector, error)
	// Code returns the SQLSTATE of an error, or its number where that is more precise; "" for an
	// error of another origin.
	Code func(err error) string
}

var registered struct {
	sync.RWMutex
	byScheme map[string]Driver
}

// Register lets a driver open addresses of the given schemes.
func Register(driver Driver, schemes ...string) {
	registered.Lock()
	defer registered.Unlock()
	if registered.byScheme == nil {
		registered.byScheme = map[string]Driver{}
	}
	for _, scheme := range schemes {
		registered.byScheme[scheme] = driver
	}
}

// Of returns the driver for a scheme.
func Of(scheme string) (driver Driver, linked bool) {
	registered.RLock()
	defer registered.RUnlock()
	driver, linked = registered.byScheme[scheme]
	return driver, linked
}

// Code returns the code of an error of any registered driver; "" for any other error.
func Code(err error) string {
	registered.RLock()
	defer registered.RUnlock()
	for _, driver := range registered.byScheme {
		if code := driver.Code(err); code != "" {
			return code
		}
	}
	return ""
}
