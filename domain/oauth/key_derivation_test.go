package oauth

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"runtime"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Deriving the keys that a holder opens", Label("J2", "J9", "J12"), func() {
	const grant = "0123456789abcdef0123456789abcdef"
	newest, before := []byte("the new secret of this server, 2"), []byte("the old secret of this server, 1")
	keys := NewKeys(FixedSecrets{newest, before})
	holder := func(text string) Secret {
		secret, ok := ParseSecret(RefreshTokenSecret, string(RefreshTokenSecret)+strings.Repeat(text, 43))
		Expect(ok).To(BeTrue())
		return secret
	}
	// expected is HKDF as crypto/hkdf does it, so that what was sealed before this version opens.
	expected := func(of Secret, salt []byte, info string) lock {
		key, err := hkdf.Key(sha256.New, []byte(of.Reveal()), salt, "pasteport/v1/"+info+"\x00"+grant, 32)
		Expect(err).NotTo(HaveOccurred())
		found, err := lockWith(key, binding{info, grant})
		Expect(err).NotTo(HaveOccurred())
		return found
	}

	DescribeTable("is HKDF-SHA256 of the holder's secret under each server secret, the newest first",
		func(derive func(Secret, string) (locks, error), info string) {
			for _, text := range []string{"A", "E", "A"} { // one after the other, and again
				found, err := derive(holder(text), grant)
				Expect(err).NotTo(HaveOccurred())
				for i, salt := range [][]byte{newest, before} {
					Expect(found[i].open(expected(holder(text), salt, info).seal([]byte("data key")))).To(BeEquivalentTo("data key"))
				}
			}
		},
		Entry("for the data key", keys.wrap, "wrap/ppr_"),
		Entry("for the successor", keys.succession, "successor"),
	)

	It("keeps a copy of each secret, because a keeper may overwrite what it has given", func() {
		keeper := &wiping{secret: newest}
		keys := NewKeys(keeper)
		for range 3 {
			found, err := keys.wrap(holder("A"), grant)
			Expect(err).NotTo(HaveOccurred())
			Expect(found[0].open(expected(holder("A"), newest, "wrap/ppr_").seal([]byte("data key")))).To(BeEquivalentTo("data key"))
			runtime.GC() // two of them empty a pool
			runtime.GC()
		}
	})
})

// wiping is a keeper that overwrites what it gave before.
type wiping struct{ secret, given []byte }

func (w *wiping) Secrets() ([][]byte, error) {
	clear(w.given)
	w.given = bytes.Clone(w.secret)
	return [][]byte{w.given}, nil
}
