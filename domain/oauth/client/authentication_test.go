package client_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// signing makes a document that of a client that signs.
func signing(members map[string]any) {
	members["token_endpoint_auth_method"], members["jwks_uri"] = "private_key_jwt", "https://client.example/jwks.json"
}

var _ = Describe("Settling how a client authenticates", Label("C30", "D33"), func() {
	settle := func(change ...func(map[string]any)) (*client.Metadata, error) {
		return rulesOf().NewMetadata(oauth.RestoreClientID(clientURL), document(change...))
	}
	methods := func(declared any, supported ...any) func(map[string]any) {
		return func(members map[string]any) {
			signing(members)
			delete(members, "token_endpoint_auth_method")
			if declared != nil {
				members["token_endpoint_auth_method"] = declared
			}
			if supported != nil {
				members["token_endpoint_auth_methods_supported"] = supported
			}
		}
	}
	algorithm := func(name any) func(map[string]any) {
		return func(members map[string]any) { members["token_endpoint_auth_signing_alg"] = name }
	}

	DescribeTable("chooses", func(method oauth.AuthMethod, change ...func(map[string]any)) {
		settled, err := settle(change...)
		Expect(err).NotTo(HaveOccurred())
		Expect(settled.AuthMethod).To(Equal(method))
	},
		Entry("none when nothing is said", oauth.PublicClient),
		Entry("either when none is declared and a signature is listed", oauth.NoneOrPrivateKeyJWT,
			methods("none", "private_key_jwt", "none")),
		Entry("a signature when it is declared", oauth.PrivateKeyJWT, methods("private_key_jwt")),
		Entry("either when a signature is declared and none is listed, as ChatGPT does", oauth.NoneOrPrivateKeyJWT,
			methods("private_key_jwt", "none", "private_key_jwt")),
		Entry("those of the list that are offered", oauth.NoneOrPrivateKeyJWT,
			methods(nil, "tls_client_auth", "private_key_jwt", "none")),
		Entry("the only one of the list that is offered", oauth.PrivateKeyJWT,
			methods(nil, "tls_client_auth", "private_key_jwt")),
		Entry("none when the client lists both and has no keys", oauth.PublicClient,
			methods("private_key_jwt", "none", "private_key_jwt"), func(m map[string]any) { delete(m, "jwks_uri") }),
		Entry("none when the client signs in a way that is not offered", oauth.PublicClient,
			methods("private_key_jwt", "private_key_jwt", "none"), algorithm("ES512")),
	)

	DescribeTable("refuses", func(kind oauth.Kind, change ...func(map[string]any)) {
		_, err := settle(append([]func(map[string]any){signing}, change...)...)
		Expect(err).To(Refused(kind))
	},
		Entry("an algorithm that is not offered", oauth.UnsupportedClient, algorithm("HS256")),
		Entry("an algorithm that is not text", oauth.UnsupportedClient, algorithm(256.0)),
		Entry("an unknown method", oauth.UnsupportedClient, methods("tls_client_auth")),
		Entry("a client that signs without a key", oauth.InvalidClientDocument, func(m map[string]any) {
			delete(m, "jwks_uri")
		}),
		Entry("keys on this server's own host", Label("C9", "C20"), oauth.InvalidClientDocument,
			func(m map[string]any) { m["jwks_uri"] = "https://cms.example/jwks" }),
		Entry("keys inside a network", Label("C8", "C20"), oauth.InvalidClientDocument, func(m map[string]any) {
			m["jwks_uri"] = "https://10.0.0.1/jwks"
		}),
		Entry("keys behind a password", Label("C2", "C20"), oauth.InvalidClientDocument, func(m map[string]any) {
			m["jwks_uri"] = "https://u:p@client.example/jwks"
		}),
	)
})

var _ = Describe("Finding a key", Label("D33"), func() {
	set := func(ids ...any) client.KeySet {
		GinkgoHelper()
		var keys []any
		for _, id := range ids {
			keys = append(keys, map[string]any{"kty": "EC", "crv": "P-256", "kid": id})
		}
		found, err := client.NewKeySet(map[string]any{"keys": keys})
		Expect(err).NotTo(HaveOccurred())
		return found
	}

	DescribeTable("succeeds only when one key is meant", func(keys func() client.KeySet, id string, found bool) {
		_, ok := keys().Key(client.KeyReference{ID: id, Algorithm: "ES256"})
		Expect(ok).To(Equal(found))
	},
		Entry("by its id", func() client.KeySet { return set("a", "b") }, "b", true),
		Entry("by another id", func() client.KeySet { return set("a", "b") }, "c", false),
		Entry("by an id that two keys have", func() client.KeySet { return set("a", "a") }, "a", false),
		Entry("by no id, of one", func() client.KeySet { return set("a") }, "", true),
		Entry("by no id, of two", func() client.KeySet { return set("a", "b") }, "", false),
		Entry("by an id that is not text", func() client.KeySet { return set(1.0) }, "1", false),
		Entry("by an id, of one that has none", func() client.KeySet { return set(nil) }, "a", false),
	)

	DescribeTable("without an id is of the only key that fits the algorithm", func(algorithm string,
		members client.Key) {
		other := map[string]any{"kty": "oct-free", "crv": "none"}
		keys, err := client.NewKeySet(map[string]any{"keys": []any{other, map[string]any(members)}})
		Expect(err).NotTo(HaveOccurred())
		for _, tried := range client.AssertionAlgorithms() {
			_, ok := keys.Key(client.KeyReference{Algorithm: tried})
			Expect(ok).To(Equal(strings.Contains(algorithm, tried)), tried)
		}
	},
		Entry("an elliptic curve", "ES256", client.Key{"kty": "EC", "crv": "P-256"}),
		Entry("another curve", "", client.Key{"kty": "EC", "crv": "P-384"}),
		Entry("RSA", "RS256 PS256", client.Key{"kty": "RSA"}),
		Entry("RSA for one algorithm", "PS256", client.Key{"kty": "RSA", "alg": "PS256", "use": "sig"}),
		Entry("Ed25519", "EdDSA", client.Key{"kty": "OKP", "crv": "Ed25519"}),
		Entry("a key agreement", "", client.Key{"kty": "OKP", "crv": "X25519"}),
		Entry("encryption", "", client.Key{"kty": "RSA", "use": "enc"}),
		Entry("members of another type", "", client.Key{"kty": []any{"RSA"}, "crv": map[string]any{}}),
	)
})

var _ = Describe("Checking an assertion", Label("D33"), func() {
	check := func(change func(*client.Assertion)) error {
		GinkgoHelper()
		rules := rulesOf()
		signer, err := rules.NewMetadata(oauth.RestoreClientID(clientURL), document(signing))
		Expect(err).NotTo(HaveOccurred())
		a := client.Assertion{
			Issuer:    clientURL,
			Subject:   clientURL,
			Audience:  []string{"https://cms.example"},
			ExpiresAt: noon.Add(time.Minute),
			ID:        "1",
			Algorithm: "ES256",
		}
		change(&a)
		return rules.CheckAssertion(a, signer, noon)
	}

	DescribeTable("takes its last instants", func(change func(*client.Assertion)) {
		Expect(check(change)).To(Succeed())
	},
		Entry("before it expires", func(a *client.Assertion) {
			a.ExpiresAt = noon.Add(-30*time.Second + time.Millisecond)
		}),
		Entry("of a life that is not too long", func(a *client.Assertion) {
			a.ExpiresAt = noon.Add(time.Hour + 30*time.Second)
		}),
		Entry("before which it is valid", func(a *client.Assertion) { a.NotBefore = noon.Add(30 * time.Second) }),
		Entry("of a jti", func(a *client.Assertion) { a.ID = strings.Repeat("j", 256) }),
	)

	DescribeTable("refuses", func(change func(*client.Assertion)) {
		Expect(check(change)).To(Refused(oauth.InvalidClient))
	},
		Entry("one that has just expired", Label("I20"), func(a *client.Assertion) {
			a.ExpiresAt = noon.Add(-30 * time.Second)
		}),
		Entry("one that lives a moment too long", func(a *client.Assertion) {
			a.ExpiresAt = noon.Add(time.Hour + 30*time.Second + time.Millisecond)
		}),
		Entry("one that is valid a moment later", func(a *client.Assertion) {
			a.NotBefore = noon.Add(30*time.Second + time.Millisecond)
		}),
		Entry("one without an algorithm", func(a *client.Assertion) { a.Algorithm = "" }),
		Entry("one for the audience with a slash", func(a *client.Assertion) { a.Audience[0] += "/" }),
	)

	It("remembers it by client and jti", func() {
		digest := func(subject, id string) oauth.Digest { return client.Assertion{Subject: subject, ID: id}.Digest() }
		Expect(digest("a", "b")).To(Equal(digest("a", "b")))
		Expect(digest("a", "b")).NotTo(Or(Equal(digest("a", "c")), Equal(digest("c", "b"))))
	})
})
