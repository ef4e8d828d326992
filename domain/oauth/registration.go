package oauth

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/pasteport/pasteport/domain/seal"
)

// SelfRegistered stands where other clients have the host that publishes their document.
const SelfRegistered = "self-registered"

// RegisteredClientsPath is the path, below the issuer, of the documents of clients that registered
// themselves (RFC 7591).
const RegisteredClientsPath = "/oauth/clients/"

const (
	registrationPurpose   = "client"
	registrationVersion   = 1
	maxRegisteredID       = 2000 // characters; some clients and proxies refuse longer URLs
	maxRegisteredRedirect = 10
	maxPackedRegistration = 32 << 10 // of the largest name and redirect URIs, decompressed
	labelLength           = 12       // characters of a box, which begins with its random nonce
)

// knownAppSchemes are the private-use schemes to which known apps redirect. Cursor registers
// grokbot together with its own. Extensions of VS Code, such as Cline, redirect to the scheme of
// the editor that runs them, which may be one of its derivatives.
var knownAppSchemes = []string{
	"com.raycast", "cursor", "grokbot", "kiro", "raycast", "vscode", "vscode-insiders", "vscodium", "warp", "windsurf",
}

// RegisterClient reads the members of a registration request (RFC 7591 §2) and returns the client
// that they describe. Its id contains the metadata, sealed under the server secret, so that nothing
// is stored. RegisterClient refuses with InvalidRedirectURI and InvalidClientMetadata.
func (s *Settings) RegisterClient(members map[string]any) (*ClientMetadata, error) {
	if s.allowClient != nil && !s.allowClient(SelfRegistered) {
		return nil, Refuse(InvalidClientMetadata, "A8", "this site does not let apps register themselves")
	}
	client, err := s.readRegistration(members)
	if err != nil {
		return nil, err
	}
	sealers, err := s.registrationSealers()
	if err != nil {
		return nil, err
	}
	box := sealers.Seal(client.packRegistration())
	client.id = RestoreClientID(s.ClientID.Registered + base64.RawURLEncoding.EncodeToString(box))
	if len(client.id.raw) >= maxRegisteredID {
		return nil, Refuse(InvalidClientMetadata, "L6", "the metadata does not fit into a client_id of 2000 "+
			"characters: send a shorter client_name or fewer redirect_uris")
	}
	return client, nil
}

func (s *Settings) readRegistration(members map[string]any) (*ClientMetadata, error) {
	document, name := clientDocument(members), ""
	var err error
	if claimed, named := document["client_name"]; named && claimed != "" { // a client may have none
		name, err = document.name()
	}
	if err = cmp.Or(err, document.checkSecrets(), document.checkFlow()); err != nil {
		return nil, refuseMetadata(err)
	}
	method := SealedClientID // without a secret, whatever the client asks for
	if asked, _ := document["token_endpoint_auth_method"].(string); AuthMethod(asked).HasSecret() {
		method = AuthMethod(asked)
	}
	client := s.registered(name, nil, document.refreshing(), method)
	client.redirects, err = document.registeredRedirects(client.privateSchemes(s.Metadata))
	return client, err
}

func (s *Settings) registered(name string, redirects []RedirectURI, refreshing refreshing,
	method AuthMethod) *ClientMetadata {
	return &ClientMetadata{
		name:             name,
		redirects:        redirects,
		refreshing:       refreshing,
		declaresClientID: true,
		authentication:   clientAuthentication{method: method},
	}
}

// refuseMetadata returns the refusal of a document as one of a registration.
func refuseMetadata(err error) error {
	return Refuse(InvalidClientMetadata, RuleOf(err),
		strings.Replace(refusalOf(err).Description, "the document", "the registration", 1))
}

// registeredRedirects refuses a redirect URI that no setting would allow. It leaves out one whose
// private-use scheme is not allowed here, because apps register the schemes of all their editions
// together.
func (d clientDocument) registeredRedirects(privateSchemes []string) (usable []RedirectURI, err error) {
	refuse := func(rule, why string) ([]RedirectURI, error) { return nil, Refuse(InvalidRedirectURI, rule, why) }
	asked, present, ok := d.list("redirect_uris")
	if !present {
		return refuse("L4", "the registration has no redirect_uris, which need 1 to 10 strings")
	}
	if !ok || len(asked) == 0 || len(asked) > maxRegisteredRedirect {
		return refuse("L4", "the redirect_uris of the registration are not a list of 1 to 10 strings")
	}
	for i, raw := range asked {
		uri, err := parseRedirectURI(raw, privateSchemes)
		switch {
		case err != nil && hasUnlistedScheme(raw):
			continue
		case err != nil:
			return refuse(RuleOf(err), "redirect_uris["+strconv.Itoa(i)+"]: "+refusalOf(err).Description)
		case hasResponseParameter(raw):
			return refuse("C26",
				"redirect_uris["+strconv.Itoa(i)+"]: its query has a parameter of the authorization response")
		}
		usable = append(usable, uri)
	}
	if len(usable) == 0 {
		return refuse("A14", "the schemes of the redirect_uris are not allowed here: the operator can add them to "+
			"allowed-private-schemes")
	}
	return usable, nil
}

// hasUnlistedScheme reports whether allowing its private-use scheme would make the URI usable.
func hasUnlistedScheme(raw string) bool {
	scheme, _, _ := strings.Cut(raw, ":")
	if lower := strings.ToLower(scheme); lower == "http" || lower == "https" ||
		slices.Contains(forbiddenSchemes, lower) {
		return false
	}
	_, err := parseRedirectURI(raw, []string{scheme})
	return err == nil
}

// OpenClient returns the client of an id that RegisterClient has returned, under any server secret
// that is still kept. It refuses every other id, and every id while self-registration is off, with
// LostRegistration.
func (s *Settings) OpenClient(id ClientID) (*ClientMetadata, error) {
	lost := Refuse(LostRegistration, "L7", "the registration of this app does not exist any more")
	if !s.SelfRegistration {
		return nil, lost
	}
	sealers, err := s.registrationSealers()
	if err != nil {
		return nil, err
	}
	text := strings.TrimPrefix(id.raw, s.ClientID.Registered)
	box, err := base64.RawURLEncoding.DecodeString(text)
	// The decoder skips line breaks and ignores unused bits.
	if err != nil || base64.RawURLEncoding.EncodeToString(box) != text {
		return nil, lost
	}
	plain, err := sealers.Open(box)
	if err != nil {
		return nil, lost
	}
	client, err := s.unpackRegistration(plain)
	if err != nil {
		return nil, fmt.Errorf("reading an opened client_id: %w", err)
	}
	client.id = id
	return client, nil
}

func (s *Settings) registrationSealers() (seal.Sealers, error) {
	return s.Keys.Sealers(seal.Binding{Kind: registrationPurpose, Owner: s.Issuer})
}

// packRegistration returns the version and the compressed metadata.
func (m *ClientMetadata) packRegistration() []byte {
	texts := []string{string(m.refreshing), string(m.authentication.method), m.name}
	packed := bytes.NewBuffer([]byte{registrationVersion})
	writer, _ := flate.NewWriter(packed, flate.DefaultCompression) // fails only for an unknown level
	_, _ = writer.Write(pack(append(texts, m.RedirectURIs()...)))  // a buffer accepts every write
	_ = writer.Close()
	return packed.Bytes()
}

func (s *Settings) unpackRegistration(plain []byte) (*ClientMetadata, error) {
	if len(plain) == 0 || plain[0] != registrationVersion {
		return nil, errors.New("it has another version")
	}
	packed, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(plain[1:])), maxPackedRegistration))
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	texts, err := unpackTexts(packed)
	if err != nil || len(texts) < 4 {
		return nil, errors.Join(errors.New("it is incomplete"), err)
	}
	var redirects []RedirectURI
	for _, raw := range texts[3:] {
		redirects = append(redirects, RedirectURI{raw})
	}
	return s.registered(texts[2], redirects, refreshing(texts[0]), AuthMethod(texts[1])), nil
}

// IsSelfRegistered reports whether the id is one of RegisterClient. It may not open any more.
func (s *Settings) IsSelfRegistered(id ClientID) bool {
	return s.ClientID.Registered != "" && strings.HasPrefix(id.raw, s.ClientID.Registered)
}

// PublisherOf returns the host that publishes the client's document, or SelfRegistered.
func (s *Settings) PublisherOf(id ClientID) string {
	if s.IsSelfRegistered(id) {
		return SelfRegistered
	}
	return id.Host()
}

// LabelOf returns a short name of the client for logs and the trace: its id, or SelfRegistered with
// the beginning of its box and the name that it claims, in quotes.
func (s *Settings) LabelOf(id ClientID, claimed string) string {
	if !s.IsSelfRegistered(id) {
		return id.raw
	}
	box := strings.TrimPrefix(id.raw, s.ClientID.Registered)
	label := SelfRegistered + "/" + box[:min(len(box), labelLength)]
	if claimed != "" {
		label += " " + strconv.QuoteToASCII(claimed)
	}
	return label
}

// LabelOfID is LabelOf with the name in the id of a client that registered itself.
func (s *Settings) LabelOfID(id ClientID) string {
	if s.IsSelfRegistered(id) {
		if client, err := s.OpenClient(id); err == nil {
			return s.LabelOf(id, client.name)
		}
	}
	return s.LabelOf(id, "")
}
