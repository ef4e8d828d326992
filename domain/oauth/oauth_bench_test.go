package oauth

import (
	"crypto/rand"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// What a guarded call asks of the rules.
func BenchmarkAdmits(b *testing.B) {
	RegisterTestingT(b)
	f := approved(settingsOf())
	Expect(f.redeem(noon)).To(Succeed())
	token := f.access
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.grant.Admits(token, f.grant.Resource(), noon.Add(time.Minute)); err != nil {
			b.Fatal(err)
		}
	}
}

// What a bearer token costs before anything is looked up.
func BenchmarkParseSecret(b *testing.B) {
	RegisterTestingT(b)
	text, keys := newSecret(AccessTokenSecret).Reveal(), settingsOf().Keys
	b.ReportAllocs()
	for b.Loop() {
		secret, err := ParseSecret(AccessTokenSecret, text, keys)
		if err != nil || secret.Digest() == (Digest{}) {
			b.Fatal("the secret is not read")
		}
	}
}

// A consent page seals a ticket, and its form opens it.
func BenchmarkTicket(b *testing.B) {
	RegisterTestingT(b)
	settings := settingsOf()
	request, err := ask(settings)
	Expect(err).NotTo(HaveOccurred())
	ticket, err := NewTicket(request, rand.Reader, noon)
	Expect(err).NotTo(HaveOccurred())
	b.ReportAllocs()
	for b.Loop() {
		sealed, err := ticket.Seal(settings.Keys)
		if err == nil {
			_, err = OpenTicket(sealed, settings, noon)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// A connection is an approval, which seals the host token, and the exchange of its code.
func BenchmarkConnect(b *testing.B) {
	RegisterTestingT(b)
	settings := settingsOf()
	b.ReportAllocs()
	for b.Loop() {
		if err := approved(settings).redeem(noon); err != nil {
			b.Fatal(err)
		}
	}
}
