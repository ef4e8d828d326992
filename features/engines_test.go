package features_test

import (
	"context"
	"errors"
	"os"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/engines"
)

// worldsOn names the engine that every world keeps its grants in; "" is SQLite.
var worldsOn = os.Getenv("WORLDS_ON")

// engine is one database server for the whole suite, started when it is first needed.
type engine struct {
	start  func(context.Context, ...string) (*engines.Server, error)
	once   sync.Once
	server *engines.Server
	err    error
}

var databaseServers = map[string]*engine{"PostgreSQL": {start: engines.Postgres}, "MariaDB": {start: engines.MariaDB}}

var _ = AfterSuite(func() {
	for _, e := range databaseServers {
		if e.server != nil {
			Expect(e.server.Close()).To(Succeed())
		}
	}
})

// database is an empty one of a server of our own.
func (e *engine) database() string {
	GinkgoHelper()
	ctx := context.Background()
	e.once.Do(func() { e.server, e.err = e.start(ctx) })
	if errors.Is(e.err, engines.ErrMissing) && !engines.Required() {
		Skip(e.err.Error())
	}
	Expect(e.err).NotTo(HaveOccurred())
	url, err := e.server.Database(ctx)
	Expect(err).NotTo(HaveOccurred())
	return url
}

// inFile skips what looks into the SQLite file of a world that has none.
func (w *World) inFile() {
	GinkgoHelper()
	if w.Database != "" {
		Skip("this is about the SQLite file")
	}
}

// LockGrants keeps everybody else from changing a grant, until unlock. The world is on a database server.
func (w *World) LockGrants(ctx context.Context) (unlock func()) {
	GinkgoHelper()
	for _, e := range databaseServers {
		if e.server == nil || !e.server.Has(w.Database) {
			continue
		}
		release, err := e.server.Hold(ctx, w.Database, "SELECT id FROM grants FOR UPDATE")
		Expect(err).NotTo(HaveOccurred())
		return func() {
			GinkgoHelper()
			Expect(release()).To(Succeed())
		}
	}
	Fail("this world is on no server of these specs")
	return nil
}
