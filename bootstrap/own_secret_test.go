package bootstrap_test

import (
	"bytes"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("A server secret that the host configures, over a SQLite file", Label("J2"), func() {
	var file string
	start := func(secret byte) error {
		GinkgoHelper()
		store, err := persistence.OpenSQLite(file)
		Expect(err).NotTo(HaveOccurred())
		defer func() { Expect(store.Close()).To(Succeed()) }()
		authz, err := bootstrap.NewOAuthServer(oauth.Config{
			Issuer: "https://site.example", VerifyBearer: func(string) bool { return true },
			Secret: bytes.Repeat([]byte{secret}, oauth.MinSecretLength),
		}, store)
		if err == nil {
			authz.Close()
		}
		return err
	}
	BeforeEach(func() {
		file = filepath.Join(GinkgoT().TempDir(), "oauth.db")
		Expect(start(1)).To(Succeed())
	})

	It("is refused when the file was used with another one", func() {
		Expect(start(2)).To(MatchError(oauth.ErrOtherSecret))
		Expect(start(1)).To(Succeed())
	})

	It("does not need the secret in the file beside the database", func() {
		Expect(os.Remove(file + ".secret")).To(Succeed())
		Expect(start(1)).To(Succeed())
		Expect(start(2)).To(MatchError(oauth.ErrOtherSecret))
	})
})
