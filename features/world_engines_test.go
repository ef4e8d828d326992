package features_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/features/engines"
	"github.com/pasteport/pasteport/features/suite"
)

// worldsOn names the database engine of every world; "" is SQLite.
var worldsOn = os.Getenv("WORLDS_ON")

// engine is a database server shared by all specs of the suite.
type engine struct{ name string }

var databaseServers = map[string]engine{"PostgreSQL": {"PostgreSQL"}, "MariaDB": {"MariaDB"}}

func (e engine) running(ctx context.Context) *engines.Endpoint {
	GinkgoHelper()
	if worldsOn == "" {
		suite.Needs("engines")
	}
	return must(engines.Shared(ctx, e.name))
}

// database returns the URL of an empty database.
func (e engine) database() string {
	GinkgoHelper()
	ctx := context.Background()
	url := must(e.running(ctx).Database(ctx))
	DeferCleanup(e.running(ctx).Drop, url)
	return url
}

// inFile skips a spec about the SQLite file if the world uses a database server.
func (w *World) inFile() {
	GinkgoHelper()
	if w.Database != "" {
		Skip("this is about the SQLite file")
	}
}

// LockGrants blocks every change of a grant until unlock. The world must be on a database server.
func (w *World) LockGrants(ctx context.Context) (unlock func()) {
	GinkgoHelper()
	name := "MariaDB"
	if strings.HasPrefix(w.Database, "postgres:") {
		name = "PostgreSQL"
	}
	release := must(databaseServers[name].running(ctx).Hold(ctx, w.Database, "SELECT id FROM grants FOR UPDATE"))
	return func() {
		GinkgoHelper()
		Expect(release()).To(Succeed())
	}
}

// oauthDatabase is the database of a world in its folder, unless it is on a database server.
const oauthDatabase = "oauth.db"

// newDatabase returns the database of a new service. It is migrated once per process, which takes
// longer than all else that starts a world; worlds start with copies.
var newDatabase = sync.OnceValues(func() (content []byte, err error) {
	folder, err := os.MkdirTemp("", "database")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	service := service.Config{DataDir: folder}
	if _, err := service.StoreLocation().Migrate(); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(folder, oauthDatabase))
})

// copyDatabase puts a new database into the world's folder.
func (w *World) copyDatabase() {
	GinkgoHelper()
	if w.Database != "" {
		return
	}
	Expect(os.WriteFile(filepath.Join(w.Dir, oauthDatabase), must(newDatabase()), 0o600)).To(Succeed())
}
