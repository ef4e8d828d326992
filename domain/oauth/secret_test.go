package oauth

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/seal"
)

var _ = Describe("Holding a secret", Label("B15", "H1", "H2"), func() {
	other := []byte("the secret of another server, 12")
	keys := seal.NewKeyRing(seal.FixedSecrets{serverSecret})

	It("names its grant and its number", func() {
		secret, err := NewSecret(RefreshTokenSecret, someGrant, 1<<31, newEntropy(), keys)
		Expect(err).NotTo(HaveOccurred())
		parsed, err := ParseSecret(RefreshTokenSecret, secret.Reveal(), keys)
		Expect(err).NotTo(HaveOccurred())
		Expect(parsed).To(And(HaveField("Grant()", someGrant), HaveField("Digest()", secret.Digest())))
		Expect(parsed.number).To(Equal(uint32(1 << 31)))
	})

	It("has 256 random bits", func() {
		random := strings.Repeat("0123456789abcdef", 2)
		entropy, err := NewEntropy(strings.NewReader(random))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(entropy[:])).To(Equal(random))
		_, err = NewEntropy(strings.NewReader(random[1:]))
		Expect(err).To(HaveOccurred())
	})

	It("has a digest that differs from its plain hash", func() {
		Expect(fmt.Sprintf("%x", DigestOf("ppa_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"))).To(
			Equal("45da1736ddd883ab980b17dcb705c73b1fed54b1ed588034fb1e72d8fd2aab18"),
			"what sha256sum says of the label, a zero byte and the token")
	})

	DescribeTable("is found by secret scanners", func(kind SecretKind, pattern string) {
		Expect(newSecret(kind).Reveal()).To(MatchRegexp(pattern))
		Expect(regexp.MustCompile(pattern).FindString("key=" + newSecret(kind).Reveal() + "\n")).To(HaveLen(84))
	},
		Entry("an access token", AccessTokenSecret, `\bppa_[A-Za-z0-9_-]{80}`),
		Entry("a refresh token", RefreshTokenSecret, `\bppr_[A-Za-z0-9_-]{80}`),
		Entry("a code", CodeSecret, `\bppc_[A-Za-z0-9_-]{80}`),
	)

	It("is not issued for what is not the id of a grant", func() {
		for _, grant := range []string{"", "abc", someGrant + "00", strings.Repeat("x", 32)} {
			_, err := NewSecret(CodeSecret, grant, 0, newEntropy(), keys)
			Expect(err).To(HaveOccurred(), grant)
		}
	})

	DescribeTable("is known under", func(ring seal.FixedSecrets, known bool) {
		_, err := ParseSecret(AccessTokenSecret, newSecret(AccessTokenSecret).Reveal(), seal.NewKeyRing(ring))
		if known {
			Expect(err).NotTo(HaveOccurred())
		} else {
			Expect(err).To(MatchError(ErrNotFound))
		}
	},
		Entry("the secret of its server", seal.FixedSecrets{serverSecret}, true),
		Entry("a secret that was replaced", seal.FixedSecrets{other, serverSecret}, true),
		Entry("no secret that was forgotten", seal.FixedSecrets{other}, false),
	)

	DescribeTable("is unknown", func(change func(text string) string) {
		text := newSecret(AccessTokenSecret).Reveal()
		Expect(change(text)).NotTo(Equal(text))
		_, err := ParseSecret(AccessTokenSecret, change(text), keys)
		Expect(err).To(MatchError(ErrNotFound))
	},
		Entry("when it is empty", func(string) string { return "" }),
		Entry("when it is a prefix", func(text string) string { return text[:4] }),
		Entry("when it is a refresh token", func(string) string { return newSecret(RefreshTokenSecret).Reveal() }),
		Entry("when it is a code", func(string) string { return newSecret(CodeSecret).Reveal() }),
		Entry("with the prefix of another kind", func(text string) string { return "ppr_" + text[4:] }),
		Entry("when it is one character shorter", func(text string) string { return text[:len(text)-1] }),
		Entry("when it is one byte shorter", func(text string) string { return text[:len(text)-4] }),
		Entry("when it is one character longer", func(text string) string { return text + "A" }),
		Entry("when it is one byte longer", func(text string) string { return text + "AAAA" }),
		Entry("with padding", func(text string) string { return text + "=" }),
		Entry("with a line break at the end", func(text string) string { return text + "\n" }),
		Entry("with a line break for a character", func(text string) string { return text[:50] + "\n" + text[51:] }),
		Entry("with line breaks for four characters", func(text string) string { return text[:80] + "\r\n\r\n" }),
		Entry("in the other alphabet", func(text string) string { return text[:83] + "+" }),
		Entry("when it is all zeroes", func(string) string { return "ppa_" + strings.Repeat("A", 80) }),
	)

	It("is unknown after any bit was flipped", func() {
		for _, kind := range []SecretKind{AccessTokenSecret, RefreshTokenSecret, CodeSecret} {
			content, err := base64.RawURLEncoding.DecodeString(newSecret(kind).Reveal()[4:])
			Expect(err).NotTo(HaveOccurred())
			for bit := range 8 * len(content) {
				content[bit/8] ^= 1 << (bit % 8)
				_, err := ParseSecret(kind, string(kind)+base64.RawURLEncoding.EncodeToString(content), keys)
				Expect(err).To(MatchError(ErrNotFound), "bit %d", bit)
				content[bit/8] ^= 1 << (bit % 8)
			}
		}
	})

	It("is neither known nor unknown while the server secrets cannot be read", Label("D30"), func() {
		_, err := ParseSecret(AccessTokenSecret, newSecret(AccessTokenSecret).Reveal(), seal.NewKeyRing(lostSecrets{}))
		Expect(err).To(And(MatchError(errLostSecrets), Not(MatchError(ErrNotFound))))
	})

	It("is never printed", func() {
		secret := newSecret(AccessTokenSecret)
		host, err := ParseHostToken("host-token")
		Expect(err).NotTo(HaveOccurred())
		nested := struct {
			inner Secret
			Outer HostToken
		}{secret, host}
		var log strings.Builder
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", secret, "nested", nested)
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "host", host, "nested", nested)
		encoded, err := json.Marshal(nested)
		Expect(err).NotTo(HaveOccurred())
		printed := fmt.Sprintf("%v %+v %#v %s %q %x %d", secret, nested, nested, host, secret, secret, nested)
		printed += string(encoded) + log.String()
		Expect(printed).NotTo(ContainSubstring(secret.Reveal()))
		Expect(printed).NotTo(ContainSubstring("host-token"))
		Expect(printed).To(ContainSubstring(redacted))
	})
})
