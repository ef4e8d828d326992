package oauth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/pasteport/pasteport/domain/seal"
	"github.com/pasteport/pasteport/features/suite"
)

func TestOAuth(t *testing.T) {
	suite.Run(t, "The rules of authorization")
}

// Refused matches a refusal of the kind.
func Refused(kind Kind) types.GomegaMatcher {
	return WithTransform(func(err error) string {
		found, _ := KindOf(err)
		return found.String()
	}, Equal(kind.String()))
}

const verifier = "a-verifier-that-is-long-enough-for-the-rules"

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

const someGrant = "0123456789abcdef0123456789abcdef"

var serverSecret = []byte("a secret that is not only zeroes")

// newSecret returns a secret of someGrant.
func newSecret(kind SecretKind) Secret { return newSecretOf(kind, someGrant, 1) }

func newSecretOf(kind SecretKind, grant string, number uint32) Secret {
	GinkgoHelper()
	secret, err := NewSecret(kind, grant, number, newEntropy(), seal.NewKeyRing(seal.FixedSecrets{serverSecret}))
	Expect(err).NotTo(HaveOccurred())
	return secret
}

func newEntropy() Entropy {
	GinkgoHelper()
	entropy, err := NewEntropy(rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	return entropy
}

func newFreshEntropy() FreshEntropy { return FreshEntropy{Access: newEntropy(), Refresh: newEntropy()} }

func settingsOf(change ...func(*Config)) *Settings {
	GinkgoHelper()
	config := Config{
		Issuer:       "https://cms.example",
		VerifyBearer: func(string) bool { return true },
		Secret:       serverSecret,
		Now:          func() time.Time { return noon },
		Random:       rand.Reader,
	}
	for _, apply := range change {
		apply(&config)
	}
	settings, err := config.Settings()
	Expect(err).NotTo(HaveOccurred())
	return settings
}

const clientURL = "https://client.example/client.json"

func ask(settings *Settings, change ...func(Parameters)) (*AuthorizationRequest, error) {
	GinkgoHelper()
	client := Client{
		ID:         RestoreClientID(clientURL),
		Name:       "Client",
		AuthMethod: PublicClient,
		DeclaresID: true,
		MayRefresh: true,
	}
	parameters := Parameters{
		"response_type":         {"code"},
		"state":                 {"s"},
		"code_challenge":        {challengeOf(verifier)},
		"code_challenge_method": {"S256"},
		"scope":                 {"mcp offline_access"},
	}
	for _, apply := range change {
		apply(parameters)
	}
	return NewAuthorizationRequest(client, RestoreRedirectURI("https://client.example/callback"), parameters, settings)
}

// family is a code, and once it is redeemed a grant, with everything that a spec needs to act on
// them.
type family struct {
	settings *Settings
	issued   *AuthorizationCode
	grant    *AccessGrant
	host     HostToken
	code     Secret
	access   Secret
	refresh  Secret
}

func approved(settings *Settings, change ...func(Parameters)) *family {
	GinkgoHelper()
	request, err := ask(settings, change...)
	Expect(err).NotTo(HaveOccurred())
	ticket, err := NewTicket(request, rand.Reader, noon)
	Expect(err).NotTo(HaveOccurred())
	host, err := ParseHostToken("host-token")
	Expect(err).NotTo(HaveOccurred())
	f := &family{settings: settings, host: host, code: newSecretOf(CodeSecret, ticket.ID(), 0)}
	f.issued, err = IssueCode(Approval{
		Ticket:    ticket,
		Host:      host,
		Principal: Principal{Subject: "ann", Roles: []string{"editor"}},
		Code:      f.code,
		Random:    rand.Reader,
	}, settings, noon)
	Expect(err).NotTo(HaveOccurred())
	return f
}

func (f *family) redemption() Redemption {
	return Redemption{
		Client:   clientURL,
		Code:     f.code,
		Verifier: verifier,
		Fresh:    newFreshEntropy(),
	}
}

func (f *family) redeem(at time.Time) error {
	by := f.redemption()
	grant, tokens, err := f.issued.Redeem(by, f.settings, at)
	if err == nil {
		f.grant = grant
		f.access, f.refresh = tokens.Access, tokens.Refresh
	}
	return err
}

func (f *family) refreshment(token Secret) RefreshRequest {
	return RefreshRequest{
		Client:    clientURL,
		Token:     token,
		Principal: Principal{Subject: "ann", Roles: []string{"reader"}},
		Fresh:     newFreshEntropy(),
	}
}

func redeemed(settings *Settings, change ...func(Parameters)) *family {
	GinkgoHelper()
	f := approved(settings, change...)
	Expect(f.redeem(noon)).To(Succeed())
	return f
}
