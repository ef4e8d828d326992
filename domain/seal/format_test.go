package seal_test

import (
	"encoding/hex"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/seal"
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
