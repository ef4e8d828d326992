package service

import (
	"os"
	"path/filepath"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Mistakes of a service", Label("F9", "configuration"), func() {
	It("are about settings that exist", func() {
		config, checked := DefaultConfig(), 0
		table := config.Table()
		known := func(path string) bool {
			return table.Explain(oauth.NewMistake("%s", oauth.Field(path))).Error() != path
		}
		files, err := filepath.Glob("*.go")
		Expect(err).NotTo(HaveOccurred())
		named := regexp.MustCompile(`oauth\.Field\("([^"]+)"\)|\{"((?:Gateway|Verification)\.[A-Z][^"]*)"`)
		for _, file := range files {
			source, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			outer := map[string]string{"tls.go": "TLS.", "connect.go": "Gateway.Connect."}[file]
			for _, found := range named.FindAllStringSubmatch(string(source), -1) {
				Expect(known(outer+found[1]+found[2])).To(BeTrue(), "%s: %s", file, found[0])
				checked++
			}
		}
		Expect(checked).To(BeNumerically(">", 50))
		Expect(known("Unknown")).To(BeFalse())
		for _, l := range config.Lifetimes() {
			Expect(known(string(l.Field))).To(BeTrue(), string(l.Field))
		}
	})
})
