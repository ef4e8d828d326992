package client_test

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

func selfRegistration(config *oauth.Config) { config.SelfRegistration = true }

var _ = Describe("Registering a client", Label("RFC 7591"), func() {
	const callback = "https://app.example/callback"
	with := func(member string, value any) map[string]any {
		return map[string]any{"redirect_uris": []any{callback}, member: value}
	}
	redirects := func(uris ...any) map[string]any { return map[string]any{"redirect_uris": uris} }
	opened := func(registered *client.Metadata, rules *client.Rules) *client.Metadata {
		GinkgoHelper()
		id, err := rules.ParseID(registered.ID.String())
		Expect(err).NotTo(HaveOccurred())
		found, err := rules.Open(id)
		Expect(err).NotTo(HaveOccurred())
		return found
	}

	DescribeTable("accepts", func(members map[string]any, name string, mayRefresh bool, uris ...string) {
		rules := rulesOf(selfRegistration)
		registered, err := rules.Register(members)
		Expect(err).NotTo(HaveOccurred())
		Expect(registered.Name).To(Equal(name))
		Expect(registered.MayRefresh).To(Equal(mayRefresh))
		Expect(registered.RedirectURIs()).To(Equal(uris))
		Expect(registered.DeclaresID).To(BeTrue())
		Expect(opened(registered, rules)).To(Equal(registered))
	},
		Entry("redirect URIs alone", Label("L6"), redirects(callback), "",
			true, callback),
		Entry("no name for an empty one", Label("L6"), with("client_name", ""), "", true, callback),
		Entry("the name that a client gives itself", Label("L6"), with("client_name", "An app"), "An app",
			true, callback),
		Entry("a method that is not offered, and gives it none", Label("L6"),
			with("token_endpoint_auth_method", "client_secret_jwt"), "", true, callback),
		Entry("further grant types, and leaves them out", Label("L6"),
			with("grant_types", []any{"authorization_code", "client_credentials"}), "", false, callback),
		Entry("members that it does not know", Label("L3"), with("jwks", 7.0), "", true, callback),
		Entry("loopback and the schemes of known apps", Label("L5"),
			redirects("http://127.0.0.1/a", "cursor://anysphere.cursor-mcp/oauth/callback", "vscode-insiders://x"),
			"", true, "http://127.0.0.1/a", "cursor://anysphere.cursor-mcp/oauth/callback",
			"vscode-insiders://x"),
		Entry("an unlisted scheme beside a usable URI, and leaves it out", Label("L4"),
			redirects("some-app:/callback", callback), "", true, callback),
	)

	DescribeTable("refuses", func(kind oauth.Kind, rule string, members map[string]any) {
		_, err := rulesOf(selfRegistration).Register(members)
		Expect(err).To(Refused(kind))
		Expect(oauth.RefusalOf(err).Rule).To(Equal(rule))
		Expect(err).NotTo(MatchError(ContainSubstring("document")), "the client has none")
	},
		Entry("no redirect URIs", Label("L4"), oauth.InvalidRedirectURI, "L4", map[string]any{}),
		Entry("no redirect URIs and empty grant types", Label("L3", "C32"), oauth.InvalidClientMetadata, "C32",
			map[string]any{"grant_types": []any{}}),
		Entry("an empty list", Label("L4"), oauth.InvalidRedirectURI, "L4", redirects()),
		Entry("a list of something else", Label("L4"), oauth.InvalidRedirectURI, "L4", redirects(callback, 1.0)),
		Entry("eleven redirect URIs", Label("L4"), oauth.InvalidRedirectURI, "L4",
			redirects(callback, callback, callback, callback, callback, callback, callback, callback, callback,
				callback, callback)),
		Entry("a script in another case", Label("L4", "A14"), oauth.InvalidRedirectURI, "A14",
			redirects(callback, "JavaScript:alert(1)")),
		Entry("plain http elsewhere in another case", Label("L4", "A13"), oauth.InvalidRedirectURI, "A14",
			redirects(callback, "HTTP://app.example/callback")),
		Entry("a user under an unlisted scheme", Label("L4", "A11"), oauth.InvalidRedirectURI, "A11",
			redirects(callback, "some-app://user@callback")),
		Entry("a relative URI", Label("L4", "A11"), oauth.InvalidRedirectURI, "A11", redirects(callback, "/callback")),
		Entry("a parameter of the response", Label("L4", "C26"), oauth.InvalidRedirectURI, "C26",
			redirects(callback, callback+"?code=1")),
		Entry("unlisted schemes only", Label("L4"), oauth.InvalidRedirectURI, "A14", redirects("some-app:/callback")),
		Entry("a blank name", Label("L3", "C24"), oauth.InvalidClientMetadata, "C24", with("client_name", " ")),
		Entry("a name that is not text", Label("L3", "C24"), oauth.InvalidClientMetadata, "C24",
			with("client_name", nil)),
		Entry("a client_secret", Label("L3", "C28"), oauth.InvalidClientMetadata, "C28", with("client_secret", "x")),
		Entry("grant types without codes", Label("L3", "C32"), oauth.InvalidClientMetadata, "C32",
			with("grant_types", []any{"client_credentials"})),
		Entry("response types without codes", Label("L3", "C32"), oauth.InvalidClientMetadata, "C32",
			with("response_types", []any{"token"})),
		Entry("a demand for DPoP", Label("L3", "C34"), oauth.InvalidClientMetadata, "C34",
			with("dpop_bound_access_tokens", true)),
	)

	It("refuses what does not fit into an id of 2000 characters, and compresses what repeats", Label("L6"), func() {
		rules := rulesOf(selfRegistration)
		random := "https://app.example/"
		for len(random) < client.MaxRedirectURILength-50 {
			var entropy [32]byte
			_, _ = rand.Read(entropy[:])
			random += base64.RawURLEncoding.EncodeToString(entropy[:])
		}
		_, err := rules.Register(redirects(random))
		Expect(err).To(Refused(oauth.InvalidClientMetadata))
		Expect(oauth.RefusalOf(err).Rule).To(Equal("L6"))
		registered, err := rules.Register(redirects(callback+strings.Repeat("/a", 1000),
			callback+strings.Repeat("/b", 1000)))
		Expect(err).NotTo(HaveOccurred())
		Expect(len(registered.ID.String())).To(BeNumerically("<", 400))
		Expect(opened(registered, rules)).To(Equal(registered))
	})

	It("returns another id each time", Label("L7"), func() {
		rules := rulesOf(selfRegistration)
		first, err := rules.Register(redirects(callback))
		Expect(err).NotTo(HaveOccurred())
		Expect(rules.Register(redirects(callback))).NotTo(HaveField("ID", first.ID))
	})

	It("opens no other text", Label("L7"), func() {
		rules := rulesOf(selfRegistration)
		registered, err := rules.Register(redirects(callback))
		Expect(err).NotTo(HaveOccurred())
		const at = "https://cms.example/oauth/clients/"
		box := strings.TrimPrefix(registered.ID.String(), at)
		for _, text := range []string{
			at + swapped(box, 0), at + swapped(box, len(box)/2), at + swapped(box, len(box)-1), at + box + "AAAA", at,
			at + box + "==", at + box + strings.Repeat("A", 2049-len(at+box)), at + box + "\n",
			"https://cms.example/oauth/client/" + box, "https://cms.example.evil.example/oauth/clients/" + box,
		} {
			id, err := rules.ParseID(text)
			if err == nil {
				_, err = rules.Open(id)
			}
			kind, _ := oauth.KindOf(err)
			Expect(kind).To(BeElementOf(oauth.LostRegistration, oauth.MalformedClientID), "%s: %v", text, err)
		}
	})

	It("opens only as it was issued, without unused bits and line breaks", Label("L7"), func() {
		const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		rules, id := rulesOf(selfRegistration), ""
		for length := 1; len(id)%4 != 2; length++ { // the last character of such an id has unused bits
			registered, err := rules.Register(with("client_name", strings.Repeat("n", length)))
			Expect(err).NotTo(HaveOccurred())
			id = strings.TrimPrefix(registered.ID.String(), "https://cms.example/oauth/clients/")
		}
		last := strings.IndexByte(alphabet, id[len(id)-1])
		for _, other := range []string{id[:len(id)-1] + alphabet[last+1:last+2], id + "\n", id[:4] + "\r\n" + id[4:]} {
			_, err := rules.Open(oauth.RestoreClientID("https://cms.example/oauth/clients/" + other))
			Expect(err).To(Refused(oauth.LostRegistration))
		}
	})

	It("reports secrets that cannot be read as an outage", Label("D30"), func() {
		rules := rulesOf(selfRegistration, func(config *oauth.Config) {
			config.Secret, config.Secrets = nil, &failing{secret: config.Secret}
		})
		registered, err := rules.Register(redirects(callback))
		Expect(err).NotTo(HaveOccurred())
		broken := rulesOf(selfRegistration, func(config *oauth.Config) {
			config.Secret, config.Secrets = nil, &failing{secret: config.Secret, after: 1, answers: 1}
		})
		_, err = broken.Open(registered.ID)
		Expect(err).To(MatchError(errKeeper))
	})

	It("is named in short where a host is shown", Label("L9"), func() {
		rules := rulesOf(selfRegistration)
		registered, err := rules.Register(redirects(callback))
		Expect(err).NotTo(HaveOccurred())
		Expect(rules.PublisherOf(registered.ID)).To(Equal("self-registered"))
		Expect(rules.LabelOf(registered.ID, "")).To(MatchRegexp("^self-registered/[A-Za-z0-9_-]{12}$"))
		Expect(rules.LabelOf(oauth.RestoreClientID(clientURL), "Claude")).To(Equal(clientURL))
		Expect(rules.LabelOf(registered.ID, "a \u202e\"b")).To(HaveSuffix(` "a \u202e\"b"`))
		Expect(rules.LabelOfID(registered.ID)).To(Equal(rules.LabelOf(registered.ID, registered.Name)))
	})
})

// swapped returns the text with another character at the place.
func swapped(text string, at int) string {
	other := "A"
	if text[at] == 'A' {
		other = "B"
	}
	return text[:at] + other + text[at+1:]
}

var errKeeper = errors.New("the disk is gone")

// failing is a SecretKeeper that fails after some answers; 0 is never.
type failing struct {
	secret         []byte
	after, answers int
}

func (f *failing) Secrets() ([][]byte, error) {
	if f.answers++; f.after > 0 && f.answers > f.after {
		return nil, errKeeper
	}
	return [][]byte{f.secret}, nil
}
