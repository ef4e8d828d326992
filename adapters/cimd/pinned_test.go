package cimd

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Pinned documents", Label("C59"), func() {
	It("reads a file again that could not be used",
		func(ctx SpecContext) {
			const id = "https://app.example/client.json"
			path := filepath.Join(GinkgoT().TempDir(), "client.json")
			at := time.Unix(1_700_000_000, 0)
			pin := func(text string, at time.Time) {
				GinkgoHelper()
				Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
				Expect(os.Chtimes(path, at, at)).To(Succeed())
			}
			pin(document(id), at)
			pinned, err := OpenPinned(filepath.Dir(path), oauth.ClientIDRules{}, oauth.ClientMetadataRules{},
				slog.New(slog.DiscardHandler))
			Expect(err).NotTo(HaveOccurred())
			name := func() string { return pinned.find(ctx, oauth.RestoreClientID(id)).Name() }
			changed := strings.Replace(document(id), "Reader", "Writer", 1)
			pin(changed[:len(changed)-1]+" ", at.Add(time.Minute)) // half of a write
			Expect(name()).To(Equal("Reader"))
			pin(changed, at.Add(time.Minute))
			Expect(name()).To(Equal("Writer"))
		})
})
