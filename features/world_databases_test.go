package features_test

import (
	"os"
	"path/filepath"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

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
	content, err := newDatabase()
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(w.Dir, oauthDatabase), content, 0o600)).To(Succeed())
}
