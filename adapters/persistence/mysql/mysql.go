// Package mysql lets package persistence open stores on MySQL or MariaDB. Import it for that alone:
//
//	import _ "github.com/pasteport/pasteport/adapters/persistence/mysql"
package mysql

import (
	"cmp"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/internal/drivers"
)

func init() {
	server := drivers.Driver{Open: open, Code: code}
	drivers.ByScheme["mysql"], drivers.ByScheme["mariadb"] = server, server
}

const (
	connectLimit = 2 * time.Second
	lockLimit    = 5 * time.Second // wait for a row lock; equal to that of the other engines
)

// open takes an address whose hosts, separated by commas, are the servers of one database.
func open(address *url.URL) (*sql.DB, gorm.Dialector, error) {
	servers := &cluster{}
	for host := range strings.SplitSeq(address.Host, ",") {
		server, err := connector(&url.URL{Host: host}, address)
		if err != nil {
			return nil, nil, err
		}
		servers.servers = append(servers.servers, server)
	}
	pool := sql.OpenDB(servers)
	return pool, mysql.New(mysql.Config{Conn: pool}), nil
}

// connector lets the driver write parameters into a statement, which takes one round trip. GORM's
// cache of prepared statements would hold a lock while a statement waits for a connection. Such
// parameters are safe in UTF-8, but not in every character set that an address may name.
func connector(server, address *url.URL) (sqldriver.Connector, error) {
	host := net.JoinHostPort(server.Hostname(), cmp.Or(server.Port(), "3306"))
	config, err := driver.ParseDSN("tcp(" + host + ")/" + strings.TrimPrefix(address.EscapedPath(), "/") + "?" +
		address.RawQuery)
	if err != nil {
		return nil, err
	}
	if config.DBName == "" {
		return nil, errors.New("the address names no database")
	}
	config.User = address.User.Username()
	config.Passwd, _ = address.User.Password()
	config.Timeout, config.InterpolateParams = connectLimit, true
	config.RejectReadOnly = true // so that connections to a former primary are closed
	config.Logger = new(driver.NopLogger)
	if err := config.Apply(driver.Charset("utf8mb4", "")); err != nil {
		return nil, err
	}
	return driver.NewConnector(config)
}

// code returns the number of an error, because most errors share the SQLSTATE HY000.
func code(err error) string {
	if failure, found := errors.AsType[*driver.MySQLError](err); found {
		return strconv.Itoa(int(failure.Number))
	}
	return ""
}
