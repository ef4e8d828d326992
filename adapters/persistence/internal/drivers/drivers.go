// Package drivers knows the drivers of the database servers that a program links, so that one whose store is a file links none. Packages postgres
// and mysql register theirs when they are imported, as drivers of database/sql do.
package drivers

import (
	"database/sql"
	"net/url"
	"sync"

	"gorm.io/gorm"
)

// Driver reaches one kind of database server.
type Driver struct {
	// Open makes a pool of connections to the address, and opens none. It fails for an address that it cannot read.
	Open func(address *url.URL) (*sql.DB, gorm.Dialector, error)
	// Code is what the server calls an error by: SQLSTATE, or the number where that says more. "" for an error of anybody else.
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

// Code asks every driver; "" is no error of a server.
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
