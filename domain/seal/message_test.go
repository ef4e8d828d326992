package seal_test

import (
	"bytes"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/seal"
)

var _ = Describe("Sealing what replicas tell each other", Label("R3"), func() {
	first, second := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	keys := seal.NewKeyRing(seal.FixedSecrets{first})

	It("shows nothing of it, and opens under the same name only", func() {
		box, err := keys.SealMessage("a", []byte("the request"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(box)).NotTo(ContainSubstring("request"))
		Expect(keys.OpenMessage("a", box)).To(Equal([]byte("the request")))
		_, err = keys.OpenMessage("b", box)
		Expect(err).To(HaveOccurred())
	})

	It("takes nothing that was changed, cut or made without the secret", func() {
		box, err := keys.SealMessage("a", []byte("the request"))
		Expect(err).NotTo(HaveOccurred())
		changed := bytes.Clone(box)
		changed[len(changed)-1] ^= 1
		forged, err := seal.NewKeyRing(seal.FixedSecrets{second}).SealMessage("a", []byte("the request"))
		Expect(err).NotTo(HaveOccurred())
		for _, wrong := range [][]byte{changed, box[:len(box)-1], box[:3], nil, forged} {
			_, err := keys.OpenMessage("a", wrong)
			Expect(err).To(HaveOccurred())
		}
	})

	It("goes on while the server secret is replaced, until the old one is forgotten", func() {
		box, err := keys.SealMessage("a", []byte("the request"))
		Expect(err).NotTo(HaveOccurred())
		Expect(seal.NewKeyRing(seal.FixedSecrets{second, first}).OpenMessage("a", box)).To(Equal([]byte("the request")))
		_, err = seal.NewKeyRing(seal.FixedSecrets{second}).OpenMessage("a", box)
		Expect(err).To(HaveOccurred())
	})
})
