package seal

import (
	"bytes"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Sealing to a public key", Label("J12", "J19"), func() {
	one, other := bytes.Repeat([]byte{1}, MinSecretLength), bytes.Repeat([]byte{2}, MinSecretLength)
	key, otherKey := bytes.Repeat([]byte{3}, KeySize), bytes.Repeat([]byte{4}, KeySize)
	binding := Binding{Kind: "kind", Owner: "owner"}
	sealers := func(b Binding, secrets ...[]byte) PairSealers {
		GinkgoHelper()
		found, err := NewKeyRing(FixedSecrets(secrets)).PairSealers(b)
		Expect(err).NotTo(HaveOccurred())
		return found
	}
	var box []byte
	BeforeEach(func() {
		public, err := PublicKey(key, binding)
		Expect(err).NotTo(HaveOccurred())
		Expect(public).To(And(HaveLen(32), Not(Equal(key))))
		box, err = sealers(binding, one).Seal(public, []byte("text"))
		Expect(err).NotTo(HaveOccurred())
	})

	It("opens with the key, under every server secret that is kept", func() {
		Expect(sealers(binding, one).Open(key, box)).To(BeEquivalentTo("text"))
		Expect(sealers(binding, other, one).Open(key, box)).To(BeEquivalentTo("text"))
	})

	DescribeTable("does not open", func(with func() PairSealers, key []byte, change func()) {
		change()
		_, err := with().Open(key, box)
		Expect(err).To(HaveOccurred())
	},
		Entry("with another key", func() PairSealers { return sealers(binding, one) }, otherKey, func() {}),
		Entry("under another server secret", func() PairSealers { return sealers(binding, other) }, key, func() {}),
		Entry("for another owner", func() PairSealers { return sealers(Binding{"kind", "another"}, one) }, key,
			func() {}),
		Entry("after a change", func() PairSealers { return sealers(binding, one) }, key, func() { box[40] ^= 1 }),
	)
})
