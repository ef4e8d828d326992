package oauth

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/bits"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/seal"
)

var _ = Describe("A proof of work", Label("B18"), func() {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	var settings *Settings
	var host HostToken
	BeforeEach(func() {
		var err error
		settings = &Settings{Issuer: "https://cms.example.com",
			Keys:   seal.NewKeyRing(seal.FixedSecrets{make([]byte, MinSecretLength)}),
			Limits: Limits{ProofBits: 4, ProofWait: 20 * time.Second}}
		host, err = ParseHostToken("host-token")
		Expect(err).NotTo(HaveOccurred())
	})
	demand := func() *ProofDemand {
		GinkgoHelper()
		var d *ProofDemand
		Expect(errors.As(NewProofDemand(host, "ticket", settings, now), &d)).To(BeTrue())
		return d
	}
	open := func(d *ProofDemand) *Proof {
		GinkgoHelper()
		proof, err := OpenProof(d.Sealed, "ticket", settings, now)
		Expect(err).NotTo(HaveOccurred())
		return proof
	}
	// nonces returns one that proves the work, and one that has a bit too few.
	nonces := func(d *ProofDemand) (good, bad string) {
		for n := 0; good == "" || bad == ""; n++ {
			key, err := pbkdf2.Key(sha256.New, strconv.Itoa(n), []byte(d.Challenge), ProofIterations, 4)
			Expect(err).NotTo(HaveOccurred())
			switch zeros := bits.LeadingZeros32(binary.BigEndian.Uint32(key)); {
			case zeros >= d.Bits:
				good = strconv.Itoa(n)
			case zeros == d.Bits-1:
				bad = strconv.Itoa(n)
			}
		}
		return good, bad
	}

	It("is solved by a nonce with enough zero bits, and carries the sealed token", func() {
		d := demand()
		Expect(d.Sealed).NotTo(ContainSubstring("host-token"))
		Expect(d.Bits).To(Equal(4))
		good, bad := nonces(d)
		proof := open(d)
		Expect(proof.Host.Reveal()).To(Equal("host-token"))
		Expect(proof.Solved(good)).To(BeTrue())
		for _, nonce := range []string{"", bad, good + "\x00", "-" + good, "99999999999"} {
			Expect(proof.Solved(nonce)).To(BeFalse(), nonce)
		}
	})

	It("is for one demand only", func() {
		one, other := demand(), demand()
		Expect(one.Challenge).NotTo(Equal(other.Challenge))
		Expect(open(one).Digest()).NotTo(Equal(open(other).Digest()))
	})

	It("reports when the wait is over", func() {
		proof := open(demand())
		Expect(proof.Waited(now.Add(20*time.Second - time.Millisecond))).To(BeFalse())
		Expect(proof.Waited(now.Add(20 * time.Second))).To(BeTrue())
	})

	It("is demanded once more with the rest of the wait", func() {
		d := demand()
		var again *ProofDemand
		Expect(errors.As(open(d).Demand(now.Add(5*time.Second)), &again)).To(BeTrue())
		Expect(again.Sealed).To(Equal(d.Sealed))
		Expect(again.Challenge).To(Equal(d.Challenge))
		Expect(again.Wait).To(Equal(15 * time.Second))
		Expect(errors.As(open(d).Demand(now.Add(time.Minute)), &again)).To(BeTrue())
		Expect(again.Wait).To(Equal(2*time.Second), "there was no turn")
	})

	It("is a refusal as TooManyGuesses", func() {
		kind, refused := KindOf(demand())
		Expect(refused).To(BeTrue())
		Expect(kind).To(Equal(TooManyGuesses))
		Expect(RuleOf(demand())).To(Equal("B6, B18"))
	})

	It("opens for its ticket only, for five minutes, and at this issuer", func() {
		sealed := demand().Sealed
		_, err := OpenProof(sealed, "another", settings, now)
		Expect(err).To(Refused(InvalidTicket))
		_, err = OpenProof(sealed, "ticket", settings, now.Add(5*time.Minute))
		Expect(err).To(Refused(ExpiredTicket))
		_, err = OpenProof("AAAA", "ticket", settings, now)
		Expect(err).To(Refused(InvalidTicket))
		elsewhere := *settings
		elsewhere.Issuer = "https://other.example.com"
		_, err = OpenProof(sealed, "ticket", &elsewhere, now)
		Expect(err).To(Refused(InvalidTicket))
	})
})
