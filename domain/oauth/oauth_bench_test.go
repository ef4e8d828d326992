package oauth

import (
	"crypto/rand"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/seal"
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

// What the box of a host token costs an approval, and its key pair alone.
func BenchmarkSealHostToken(b *testing.B) {
	RegisterTestingT(b)
	settings, holder, token := settingsOf(), newSecret(CodeSecret), HostToken{conceal("host-token")}
	b.Run("with its key pair", func(b *testing.B) {
		for b.Loop() {
			if _, err := sealHostToken(token, holder, "grant", rand.Reader, settings.Keys); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("key pair alone", func(b *testing.B) {
		key := make([]byte, seal.KeySize)
		for b.Loop() {
			if _, err := seal.PublicKey(key, replacementOf("grant")); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// What it costs to open a box, and a replacement until the next refresh.
func BenchmarkOpenHostToken(b *testing.B) {
	RegisterTestingT(b)
	settings, holder := settingsOf(), newSecret(CodeSecret)
	box, err := sealHostToken(HostToken{conceal("host-token")}, holder, "grant", rand.Reader, settings.Keys)
	Expect(err).NotTo(HaveOccurred())
	replaced, err := box.replace(NewReplacement(HostToken{conceal("another")}, time.Time{}), "grant", settings.Keys)
	Expect(err).NotTo(HaveOccurred())
	for name, sealed := range map[string]sealedHostToken{"box": box, "replacement": replaced} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := sealed.open(holder, "grant", settings.Keys); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
