package oauth

import (
	"crypto/rand"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A replacement of a host token", Label("J19"), func() {
	It("seals the new token once for each grant, however often it is applied", func() {
		settings, holder := settingsOf(), newSecret(CodeSecret)
		sealed := func(grant string) sealedHostToken {
			box, err := sealHostToken(HostToken{conceal("host-token")}, holder, grant, rand.Reader, settings.Keys)
			Expect(err).NotTo(HaveOccurred())
			return box
		}
		first, second := sealed("first"), sealed("second")
		by := NewReplacement(HostToken{conceal("another")}, noon)
		once, err := first.replace(by, "first", settings.Keys)
		Expect(err).NotTo(HaveOccurred())
		Expect(first.replace(by, "first", settings.Keys)).To(Equal(once))
		other, err := second.replace(by, "second", settings.Keys)
		Expect(err).NotTo(HaveOccurred())
		for grant, box := range map[string]sealedHostToken{"first": once, "second": other} {
			opened, err := box.open(holder, grant, settings.Keys)
			Expect(err).NotTo(HaveOccurred())
			Expect(opened.Reveal()).To(Equal("another"))
		}
	})
})
