package seal_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/seal"
	"github.com/pasteport/pasteport/features/suite"
)

type hostToken string

func (t hostToken) Reveal() string { return string(t) }

// The bytes are of the version before this package, with the same secrets.
var _ = Describe("Sealed formats", Label("J2"), func() {
	keys := seal.NewKeyRing(seal.FixedSecrets{[]byte("a secret that is not only zeroes"),
		[]byte("the old secret of this server, 1")})
	bytesOf := func(text string) []byte {
		GinkgoHelper()
		decoded, err := hex.DecodeString(text)
		Expect(err).NotTo(HaveOccurred())
		return decoded
	}

	It("are opened by every later version", Label("J12", "R3"), func() {
		Expect(keys.OpenMessage("replica-1",
			bytesOf("d2b4311de5189011851bd30c060bb9e2f9d3c7628d400a7140dc77d64788d83c3cf33a5e60c28c"))).
			To(BeEquivalentTo("the request"))
		forms, err := keys.Sealers(seal.Binding{Kind: "ticket", Owner: "https://cms.example"})
		Expect(err).NotTo(HaveOccurred())
		Expect(forms.Open(bytesOf("b521b8e685eaf7a0ea87f60624464adfe81b1d5db84d25edf1cc7f67ddd88e82"))).
			To(BeEquivalentTo("form"))
	})

	It("name the same thing in every later version", Label("J10", "U12"), func() {
		Expect(keys.BindSession("session", "owner")).To(Equal("session.qC_z1PZMRiE0yMPRWUnDHw"))
		Expect(keys.Tags("window\x00guesses/network", "203.0.113.0/24")).
			To(ContainElement(seal.Tag(bytesOf("245d84ee2172745c7c96d19f88bf67e1088a8475ec5678bfe5efd157cb7bf321"))))
		Expect(keys.SecretFingerprints()).To(Equal([]seal.Fingerprint{
			seal.Fingerprint(bytesOf("3d58c0f318e517f37d63a1674ee01a95")),
			seal.Fingerprint(bytesOf("13b45cfc92a293db796c674bfebbba05")),
		}))
		Expect(keys.Fingerprints(hostToken("host-token"))).To(Equal([]seal.Fingerprint{
			seal.Fingerprint(bytesOf("b8a7dec2d7f0517a58ee81dbb3974aaf")),
			seal.Fingerprint(bytesOf("ca5ee3beaaafac790e1e6215992f914c")),
		}))
	})
})

var _ = Describe("Binding a session to its owner", Label("U12"), func() {
	keys := seal.NewKeyRing(seal.FixedSecrets{bytes.Repeat([]byte{1}, 32)})

	It("opens what it has bound, however the upstream calls it", func() {
		for _, session := range []string{"a", "a.b.c", "", strings.Repeat("x", 500)} {
			bound, err := keys.BindSession(session, "owner")
			Expect(err).NotTo(HaveOccurred())
			opened, ok, err := keys.OpenSession(bound, "owner")
			Expect(err).NotTo(HaveOccurred())
			Expect(ok).To(BeTrue())
			Expect(opened).To(Equal(session))
		}
	})

	DescribeTable("opens nothing else:", func(spoil func(string) string, grant string) {
		bound, err := keys.BindSession("session", "owner")
		Expect(err).NotTo(HaveOccurred())
		opened, ok, err := keys.OpenSession(spoil(bound), grant)
		Expect(err).NotTo(HaveOccurred())
		Expect(ok).To(BeFalse())
		Expect(opened).To(BeEmpty())
	},
		Entry("another grant's", func(s string) string { return s }, "other"),
		Entry("another session", func(s string) string { return "x" + s }, "owner"),
		Entry("a shorter tag", func(s string) string { return s[:len(s)-1] }, "owner"),
		Entry("no tag", func(string) string { return "session" }, "owner"),
		Entry("what is between two sessions", func(s string) string {
			return strings.Replace(s, "session", "sess", 1)
		}, "owner"),
	)
})

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
})

func TestSeal(t *testing.T) {
	suite.Run(t, "Keys and sealed boxes")
}
