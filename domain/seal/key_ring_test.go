package seal

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"runtime"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// token is a Confidential.
type token string

func (t token) Reveal() string { return string(t) }

var (
	newest = []byte("the new secret of this server, 2")
	before = []byte("the old secret of this server, 1")
)

var _ = Describe("Deriving the keys that a holder opens", Label("J2", "J9", "J12"), func() {
	successor := Binding{Kind: "successor", Owner: "grant"}
	// expected is HKDF as crypto/hkdf does it, so that what was sealed before this version opens.
	expected := func(of token, salt []byte) Sealer {
		key, err := hkdf.Key(sha256.New, []byte(of), salt, "pasteport/v1/successor\x00grant", 32)
		Expect(err).NotTo(HaveOccurred())
		found, err := NewSealer(key, successor)
		Expect(err).NotTo(HaveOccurred())
		return found
	}

	It("is HKDF-SHA256 of the holder's secret under each server secret, the newest first", func() {
		keys := NewKeyRing(FixedSecrets{newest, before})
		for _, holder := range []token{"A", "E", "A"} { // one after the other, and again
			found, err := keys.HolderSealers(holder, successor)
			Expect(err).NotTo(HaveOccurred())
			for i, salt := range [][]byte{newest, before} {
				Expect(found[i].Open(expected(holder, salt).Seal([]byte("data key")))).To(BeEquivalentTo("data key"))
			}
		}
	})

	It("keeps a copy of each secret, because a keeper may overwrite what it has given", func() {
		keys := NewKeyRing(&wiping{secret: newest})
		for range 3 {
			found, err := keys.HolderSealers(token("A"), successor)
			Expect(err).NotTo(HaveOccurred())
			Expect(found[0].Open(expected("A", newest).Seal([]byte("data key")))).To(BeEquivalentTo("data key"))
			runtime.GC() // two of them empty a pool
			runtime.GC()
		}
		before, err := keys.Snapshot()
		Expect(err).NotTo(HaveOccurred())
		_, err = keys.Snapshot()
		Expect(err).NotTo(HaveOccurred())
		Expect(before.secrets()).To(Equal([][]byte{newest}))
	})
})

// wiping is a keeper that overwrites what it gave before.
type wiping struct{ secret, given []byte }

func (w *wiping) Secrets() ([][]byte, error) {
	clear(w.given)
	w.given = bytes.Clone(w.secret)
	return [][]byte{w.given}, nil
}

// changing is a keeper whose secrets are replaced while everything runs.
type changing [][]byte

func (c *changing) Secrets() ([][]byte, error) { return *c, nil }

// lost is a keeper that cannot read its secrets.
type lost struct{}

var errLost = errors.New("the disk is gone")

func (lost) Secrets() ([][]byte, error) { return nil, errLost }

var _ = Describe("Changing the server secret of a key ring", Label("J2"), func() {
	It("uses the current secrets, also after others were derived", Label("B4", "J10"), func() {
		secrets := changing{bytes.Clone(before)}
		keys := NewKeyRing(&secrets)
		seals := func() (Sealers, Fingerprint) {
			GinkgoHelper()
			found, err := keys.Sealers(Binding{Kind: "ticket", Owner: "https://site.example"})
			Expect(err).NotTo(HaveOccurred())
			print, err := keys.Fingerprint(token("host-token"))
			Expect(err).NotTo(HaveOccurred())
			return found, print
		}
		first, firstPrint := seals()
		box := first.Seal([]byte("form"))
		again, againPrint := seals()
		Expect(again.Open(box)).To(BeEquivalentTo("form"))
		Expect(againPrint).To(Equal(firstPrint))

		secrets = changing{newest, before}
		both, freshPrint := seals()
		Expect(both.Open(box)).To(BeEquivalentTo("form"))
		Expect(freshPrint).NotTo(Equal(firstPrint))
		_, err := first.Open(both.Seal([]byte("form")))
		Expect(err).To(HaveOccurred())

		secrets = changing{bytes.Clone(newest)}
		alone, _ := seals()
		_, err = alone.Open(box)
		Expect(err).To(HaveOccurred())
		copy(secrets[0], before) // in the same place
		back, backPrint := seals()
		Expect(back.Open(box)).To(BeEquivalentTo("form"))
		Expect(backPrint).To(Equal(firstPrint))
	})

	It("takes all keys of a snapshot from the secrets of its moment", Label("I22"), func() {
		secrets := changing{before}
		keys := NewKeyRing(&secrets)
		snapshot, err := keys.Snapshot()
		Expect(err).NotTo(HaveOccurred())
		print, err := keys.Fingerprint(token("host-token"))
		Expect(err).NotTo(HaveOccurred())
		secrets = changing{newest}
		Expect(snapshot.Fingerprint(token("host-token"))).To(Equal(print))
		Expect(keys.Fingerprint(token("host-token"))).NotTo(Equal(print))
	})

	It("derives nothing while the secrets cannot be read, or when there is none", Label("D30"), func() {
		_, err := NewKeyRing(lost{}).Fingerprint(token("host-token"))
		Expect(err).To(MatchError(errLost))
		_, err = NewKeyRing(FixedSecrets{}).Fingerprint(token("host-token"))
		Expect(err).To(MatchError(ContainSubstring("there is none")))
	})
})
