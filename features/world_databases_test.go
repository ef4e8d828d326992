package features_test

import (
	"os"
	"path/filepath"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// Databases of a world in its folder: that of OAuth, unless it is on a database server, and that of
// the site.
const (
	oauthDatabase   = "oauth.db"
	contentDatabase = "content.db"
)

// newDatabases returns the databases of a new service by name. They are migrated once per process,
// which takes longer than all else that starts a world; worlds start with copies.
var newDatabases = sync.OnceValues(func() (contents map[string][]byte, err error) {
	folder, err := os.MkdirTemp("", "databases")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	service := service.Config{DataDir: folder}
	if _, err := service.StoreLocation().Migrate(); err != nil {
		return nil, err
	}
	site, err := demosite.Open(filepath.Join(folder, contentDatabase))
	if err != nil {
		return nil, err
	}
	if err := site.Close(); err != nil { // moves the log into the file
		return nil, err
	}
	contents = map[string][]byte{}
	for _, name := range []string{oauthDatabase, contentDatabase} {
		if contents[name], err = os.ReadFile(filepath.Join(folder, name)); err != nil {
			return nil, err
		}
	}
	return contents, nil
})

// copyDatabases puts new databases into the world's folder.
func (w *World) copyDatabases() {
	GinkgoHelper()
	contents, err := newDatabases()
	Expect(err).NotTo(HaveOccurred())
	for name, content := range contents {
		if name == oauthDatabase && w.Database != "" {
			continue
		}
		Expect(os.WriteFile(filepath.Join(w.Dir, name), content, 0o600)).To(Succeed())
	}
}
