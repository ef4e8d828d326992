package oauth

import (
	"encoding/base64"
	"errors"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func selfRegistration(config *Config) { config.SelfRegistration = true }

var _ = Describe("Registering a client", Label("RFC 7591"), func() {
	const callback = "https://app.example/callback"
	with := func(member string, value any) map[string]any {
		return map[string]any{"redirect_uris": []any{callback}, member: value}
	}
	redirects := func(uris ...any) map[string]any { return map[string]any{"redirect_uris": uris} }
	opened := func(client *ClientMetadata, settings *Settings) *ClientMetadata {
		GinkgoHelper()
		id, err := ParseClientID(client.ID().String(), settings.ClientID)
		Expect(err).NotTo(HaveOccurred())
		found, err := settings.OpenClient(id)
		Expect(err).NotTo(HaveOccurred())
		return found
	}

	DescribeTable("accepts", func(members map[string]any, name string, mayRefresh bool, uris ...string) {
		settings := settingsOf(selfRegistration)
		client, err := settings.RegisterClient(members)
		Expect(err).NotTo(HaveOccurred())
		Expect(client.Name()).To(Equal(name))
		Expect(client.MayRefresh()).To(Equal(mayRefresh))
		Expect(client.RedirectURIs()).To(Equal(uris))
		Expect(client.DeclaresClientID()).To(BeTrue())
		Expect(opened(client, settings)).To(Equal(client))
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

	DescribeTable("refuses", func(kind Kind, rule string, members map[string]any) {
		_, err := settingsOf(selfRegistration).RegisterClient(members)
		Expect(err).To(Refused(kind))
		Expect(RuleOf(err)).To(Equal(rule))
		Expect(err).NotTo(MatchError(ContainSubstring("document")), "the client has none")
	},
		Entry("no redirect URIs", Label("L4"), InvalidRedirectURI, "L4", map[string]any{}),
		Entry("no redirect URIs and empty grant types", Label("L3", "C32"), InvalidClientMetadata, "C32",
			map[string]any{"grant_types": []any{}}),
		Entry("an empty list", Label("L4"), InvalidRedirectURI, "L4", redirects()),
		Entry("a list of something else", Label("L4"), InvalidRedirectURI, "L4", redirects(callback, 1.0)),
		Entry("eleven redirect URIs", Label("L4"), InvalidRedirectURI, "L4",
			redirects(callback, callback, callback, callback, callback, callback, callback, callback, callback,
				callback, callback)),
		Entry("a script in another case", Label("L4", "A14"), InvalidRedirectURI, "A14",
			redirects(callback, "JavaScript:alert(1)")),
		Entry("plain http elsewhere in another case", Label("L4", "A13"), InvalidRedirectURI, "A14",
			redirects(callback, "HTTP://app.example/callback")),
		Entry("a user under an unlisted scheme", Label("L4", "A11"), InvalidRedirectURI, "A11",
			redirects(callback, "some-app://user@callback")),
		Entry("a relative URI", Label("L4", "A11"), InvalidRedirectURI, "A11", redirects(callback, "/callback")),
		Entry("a parameter of the response", Label("L4", "C26"), InvalidRedirectURI, "C26",
			redirects(callback, callback+"?code=1")),
		Entry("unlisted schemes only", Label("L4"), InvalidRedirectURI, "A14", redirects("some-app:/callback")),
		Entry("a blank name", Label("L3", "C24"), InvalidClientMetadata, "C24", with("client_name", " ")),
		Entry("a name that is not text", Label("L3", "C24"), InvalidClientMetadata, "C24", with("client_name", nil)),
		Entry("a client_secret", Label("L3", "C28"), InvalidClientMetadata, "C28", with("client_secret", "x")),
		Entry("grant types without codes", Label("L3", "C32"), InvalidClientMetadata, "C32",
			with("grant_types", []any{"client_credentials"})),
		Entry("response types without codes", Label("L3", "C32"), InvalidClientMetadata, "C32",
			with("response_types", []any{"token"})),
		Entry("a demand for DPoP", Label("L3", "C34"), InvalidClientMetadata, "C34",
			with("dpop_bound_access_tokens", true)),
	)

	It("refuses what does not fit into an id of 2000 characters, and compresses what repeats", Label("L6"), func() {
		settings := settingsOf(selfRegistration)
		random := "https://app.example/"
		for len(random) < maxRedirectURILength-50 {
			entropy := newEntropy()
			random += base64.RawURLEncoding.EncodeToString(entropy[:])
		}
		_, err := settings.RegisterClient(redirects(random))
		Expect(err).To(Refused(InvalidClientMetadata))
		Expect(RuleOf(err)).To(Equal("L6"))
		client, err := settings.RegisterClient(redirects(callback+strings.Repeat("/a", 1000),
			callback+strings.Repeat("/b", 1000)))
		Expect(err).NotTo(HaveOccurred())
		Expect(len(client.ID().String())).To(BeNumerically("<", 400))
		Expect(opened(client, settings)).To(Equal(client))
	})

	It("returns another id each time", Label("L7"), func() {
		settings := settingsOf(selfRegistration)
		first, err := settings.RegisterClient(redirects(callback))
		Expect(err).NotTo(HaveOccurred())
		Expect(settings.RegisterClient(redirects(callback))).NotTo(HaveField("ID()", first.ID()))
	})

	It("opens no other text", Label("L7"), func() {
		settings := settingsOf(selfRegistration)
		client, err := settings.RegisterClient(redirects(callback))
		Expect(err).NotTo(HaveOccurred())
		const at = "https://cms.example/oauth/clients/"
		box := strings.TrimPrefix(client.ID().String(), at)
		for _, text := range []string{
			at + swapped(box, 0), at + swapped(box, len(box)/2), at + swapped(box, len(box)-1), at + box + "AAAA", at,
			at + box + "==", at + box + strings.Repeat("A", 2049-len(at+box)), at + box + "\n",
			"https://cms.example/oauth/client/" + box, "https://cms.example.evil.example/oauth/clients/" + box,
		} {
			id, err := ParseClientID(text, settings.ClientID)
			if err == nil {
				_, err = settings.OpenClient(id)
			}
			kind, _ := KindOf(err)
			Expect(kind).To(BeElementOf(LostRegistration, MalformedClientID), "%s: %v", text, err)
		}
	})

	It("opens only as it was issued, without unused bits and line breaks", Label("L7"), func() {
		const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		settings, id := settingsOf(selfRegistration), ""
		for length := 1; len(id)%4 != 2; length++ { // the last character of such an id has unused bits
			client, err := settings.RegisterClient(with("client_name", strings.Repeat("n", length)))
			Expect(err).NotTo(HaveOccurred())
			id = strings.TrimPrefix(client.ID().String(), "https://cms.example/oauth/clients/")
		}
		last := strings.IndexByte(alphabet, id[len(id)-1])
		for _, other := range []string{id[:len(id)-1] + alphabet[last+1:last+2], id + "\n", id[:4] + "\r\n" + id[4:]} {
			_, err := settings.OpenClient(RestoreClientID("https://cms.example/oauth/clients/" + other))
			Expect(err).To(Refused(LostRegistration))
		}
	})

	It("reports secrets that cannot be read as an outage", Label("D30"), func() {
		settings := settingsOf(selfRegistration, func(config *Config) {
			config.Secret, config.Secrets = nil, &failing{secret: config.Secret}
		})
		client, err := settings.RegisterClient(redirects(callback))
		Expect(err).NotTo(HaveOccurred())
		broken := settingsOf(selfRegistration, func(config *Config) {
			config.Secret, config.Secrets = nil, &failing{secret: config.Secret, after: 1}
		})
		_, err = broken.OpenClient(client.ID())
		Expect(err).To(MatchError(errKeeper))
	})

	It("is named in short where a host is shown", Label("L9"), func() {
		settings := settingsOf(selfRegistration)
		client, err := settings.RegisterClient(redirects(callback))
		Expect(err).NotTo(HaveOccurred())
		Expect(settings.PublisherOf(client.ID())).To(Equal("self-registered"))
		Expect(settings.LabelOf(client.ID(), "")).To(MatchRegexp("^self-registered/[A-Za-z0-9_-]{12}$"))
		Expect(settings.LabelOf(RestoreClientID(clientURL), "Claude")).To(Equal(clientURL))
		Expect(settings.LabelOf(client.ID(), "a \u202e\"b")).To(HaveSuffix(` "a \u202e\"b"`))
		Expect(settings.LabelOfID(client.ID())).To(Equal(settings.LabelOf(client.ID(), client.Name())))
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
