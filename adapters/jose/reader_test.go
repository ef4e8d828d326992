package jose

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth/client"
	"github.com/pasteport/pasteport/features/suite"
)

func TestAssertions(t *testing.T) {
	suite.Run(t, "Signed assertions")
}

var _ = Describe("Reading an assertion", Label("D33"), func() {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	claims := jwt.Claims{
		Issuer:    "i",
		Subject:   "s",
		Audience:  jwt.Audience{"a", "b"},
		ID:        "1",
		NotBefore: jwt.NewNumericDate(noon),
		Expiry:    jwt.NewNumericDate(noon.Add(time.Minute)),
	}
	sign := func(algorithm jose.SignatureAlgorithm, key crypto.Signer, claims any) string {
		GinkgoHelper()
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: "k"}},
			nil)
		Expect(err).NotTo(HaveOccurred())
		text, err := jwt.Signed(signer).Claims(claims).Serialize()
		Expect(err).NotTo(HaveOccurred())
		return text
	}
	published := func(key crypto.Signer, change func(*jose.JSONWebKey)) (members client.Key) {
		GinkgoHelper()
		public := jose.JSONWebKey{Key: key.Public(), KeyID: "k"}
		change(&public)
		encoded, err := json.Marshal(public)
		Expect(err).NotTo(HaveOccurred())
		Expect(json.Unmarshal(encoded, &members)).To(Succeed())
		return members
	}
	asPublished := func(*jose.JSONWebKey) {}
	read := func(text string, key client.Key) (client.Assertion, error) {
		return Reader{}.ReadAssertion(text, func(by client.KeyReference) (client.Key, error) {
			Expect(by.ID).To(Equal("k"))
			return key, nil
		})
	}
	onCurve := func(curve elliptic.Curve) crypto.Signer {
		GinkgoHelper()
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		Expect(err).NotTo(HaveOccurred())
		return key
	}
	ofRSA := func(bits int) crypto.Signer {
		GinkgoHelper()
		key, err := rsa.GenerateKey(rand.Reader, bits)
		Expect(err).NotTo(HaveOccurred())
		return key
	}

	It("returns the claims", func() {
		key := onCurve(elliptic.P256())
		assertion, err := read(sign(jose.ES256, key, claims), published(key, asPublished))
		Expect(err).NotTo(HaveOccurred())
		Expect(assertion.ExpiresAt).To(BeTemporally("==", noon.Add(time.Minute)))
		Expect(assertion.NotBefore).To(BeTemporally("==", noon))
		assertion.ExpiresAt, assertion.NotBefore = time.Time{}, time.Time{}
		Expect(assertion).To(Equal(client.Assertion{
			Issuer:    "i",
			Subject:   "s",
			Audience:  []string{"a", "b"},
			ID:        "1",
			Algorithm: "ES256",
		}))
	})

	It("returns the error of the key lookup", func() {
		reason := errors.New("the host is down")
		_, err := Reader{}.ReadAssertion(sign(jose.ES256, onCurve(elliptic.P256()), claims),
			func(client.KeyReference) (client.Key, error) {
				return nil, reason
			})
		Expect(err).To(And(MatchError(reason), Not(MatchError(client.ErrBadAssertion))))
	})

	DescribeTable("refuses a signature by",
		func(algorithm jose.SignatureAlgorithm, key func() crypto.Signer, change func(*jose.JSONWebKey)) {
			signer := key()
			_, err := read(sign(algorithm, signer, claims), published(signer, change))
			Expect(err).To(MatchError(client.ErrBadAssertion))
		},
		Entry("an algorithm that is not offered", jose.ES384, func() crypto.Signer {
			return onCurve(elliptic.P384())
		}, asPublished),
		Entry("a key for encryption", jose.ES256, func() crypto.Signer {
			return onCurve(elliptic.P256())
		}, func(k *jose.JSONWebKey) { k.Use = "enc" }),
		Entry("a key for another algorithm", jose.PS256, func() crypto.Signer {
			return ofRSA(2048)
		}, func(k *jose.JSONWebKey) { k.Algorithm = "RS256" }),
		Entry("a key that is too short", jose.RS256, func() crypto.Signer { return ofRSA(2040) }, asPublished),
	)

	It("refuses a key that is too long before it computes with it", func() {
		key := onCurve(elliptic.P256())
		long := client.Key{"kty": "RSA", "n": strings.Repeat("_", 32<<10), "e": "AQAB"}
		_, err := read(sign(jose.ES256, key, claims), long)
		Expect(err).To(And(MatchError(client.ErrBadAssertion), MatchError(jose.ErrUnsupportedKeyType)))
	})

	DescribeTable("refuses an invalid key:", func(key client.Key) {
		_, err := read(sign(jose.ES256, onCurve(elliptic.P256()), claims), key)
		Expect(err).To(MatchError(client.ErrBadAssertion))
	},
		Entry("a point that is not on the curve", client.Key{
			"kty": "EC",
			"crv": "P-256",
			"x":   strings.Repeat("A", 43),
			"y":   strings.Repeat("A", 43),
		}),
		Entry("a shared secret", client.Key{"kty": "oct", "k": "AAAA"}),
	)

	DescribeTable("refuses an invalid JWT:", func(text string) {
		_, err := read(text, nil)
		Expect(err).To(MatchError(client.ErrBadAssertion))
	},
		Entry("a JWS in JSON", `{"payload":"","protected":"eyJhbGciOiJFUzI1NiJ9","signature":""}`),
		Entry("no algorithm", "e30.e30."),
		Entry("the algorithm none", "eyJhbGciOiJub25lIn0.e30."),
	)
})
