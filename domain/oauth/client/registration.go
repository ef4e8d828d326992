package client

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

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
)

// RegisteredPath is the path, below the issuer, of the documents of clients that registered
// themselves (RFC 7591).
const RegisteredPath = "/oauth/clients/"

const (
	registrationVersion   = 1
	maxRegisteredID       = 2000 // characters; some clients and proxies refuse longer URLs
	maxRegisteredRedirect = 10
	maxPackedRegistration = 32 << 10 // bytes after decompression; the largest name and redirect URIs fit
)

// knownAppSchemes are the private-use schemes to which known apps redirect. Cursor registers
// grokbot together with its own. Extensions of VS Code, such as Cline, redirect to the scheme of
// the editor that runs them, which may be one of its derivatives.
var knownAppSchemes = []string{
	"com.raycast", "cursor", "grokbot", "kiro", "raycast", "vscode", "vscode-insiders", "vscodium", "warp", "windsurf",
}

// Register reads the members of a registration request (RFC 7591 §2) and returns the client that
// they describe. The id of the client contains its metadata, sealed under the server secret, so
// that nothing is stored. Register refuses with InvalidRedirectURI and InvalidClientMetadata.
func (r *Rules) Register(registration map[string]any) (*Metadata, error) {
	if allows := r.config.AllowClient; allows != nil && !allows(oauth.SelfRegistered) {
		return nil, oauth.Refuse(oauth.InvalidClientMetadata, "A8", "this site does not let apps register themselves")
	}
	client, err := r.readRegistration(registration)
	if err != nil {
		return nil, err
	}
	sealers, err := r.registrationSealers()
	if err != nil {
		return nil, err
	}
	id := r.registeredPrefix() + base64.RawURLEncoding.EncodeToString(sealers.Seal(client.pack()))
	if len(id) >= maxRegisteredID {
		return nil, oauth.Refuse(oauth.InvalidClientMetadata, "L6", "the metadata does not fit into a client_id of "+
			"2000 characters: send a shorter client_name or fewer redirect_uris")
	}
	client.ID = oauth.RestoreClientID(id)
	return client, nil
}

func (r *Rules) readRegistration(d members) (client *Metadata, err error) {
	name := ""
	if claimed, named := d["client_name"]; named && claimed != "" { // a client may have none
		name, err = d.name()
	}
	if err = cmp.Or(err, d.checkSecrets(), d.checkFlow()); err != nil {
		why := oauth.RefusalOf(err) // its text is about a document
		return nil, oauth.Refuse(oauth.InvalidClientMetadata, why.Rule,
			strings.Replace(why.Description, "the document", "the registration", 1))
	}
	client = r.newRegistered(name, oauth.SealedClientID) // also if it asks for a method that is not offered
	if asked, _ := d["token_endpoint_auth_method"].(string); oauth.AuthMethod(asked).HasSecret() {
		client.AuthMethod = oauth.AuthMethod(asked)
	}
	client.MayRefresh, client.DeclaresRefresh = d.refresh()
	client.redirects, err = d.registeredRedirects(client.privateSchemes)
	return client, err
}

func (r *Rules) newRegistered(name string, method oauth.AuthMethod) *Metadata {
	return &Metadata{
		Client:         oauth.Client{Name: name, AuthMethod: method, DeclaresID: true},
		privateSchemes: slices.Concat(r.config.AllowedPrivateSchemes, knownAppSchemes),
	}
}

// registeredRedirects refuses a redirect URI that no setting would allow. It leaves out one whose
// private-use scheme is not allowed here, because apps register the schemes of all their editions
// together.
func (d members) registeredRedirects(privateSchemes []string) (usable []oauth.RedirectURI, err error) {
	refuse := func(rule, why string) ([]oauth.RedirectURI, error) {
		return nil, oauth.Refuse(oauth.InvalidRedirectURI, rule, why)
	}
	asked, present, ok := d.list("redirect_uris")
	if !present {
		return refuse("L4", "the registration has no redirect_uris, which need 1 to 10 strings")
	}
	if !ok || len(asked) == 0 || len(asked) > maxRegisteredRedirect {
		return refuse("L4", "the redirect_uris of the registration are not a list of 1 to 10 strings")
	}
	for i, raw := range asked {
		target, err := parseRedirectURI(raw, privateSchemes)
		switch {
		case err != nil && hasUnlistedScheme(raw):
			continue
		case err != nil:
			why := oauth.RefusalOf(err)
			return refuse(why.Rule, "redirect_uris["+strconv.Itoa(i)+"]: "+why.Description)
		case hasResponseParameter(raw):
			return refuse("C26",
				"redirect_uris["+strconv.Itoa(i)+"]: its query has a parameter of the authorization response")
		}
		usable = append(usable, target)
	}
	if len(usable) == 0 {
		return refuse("A14", "the schemes of the redirect_uris are not allowed here: the operator can add them to "+
			"allowed-private-schemes")
	}
	return usable, nil
}

// hasUnlistedScheme reports whether the URI would be usable if its private-use scheme were allowed.
func hasUnlistedScheme(raw string) bool {
	scheme, _, _ := strings.Cut(raw, ":")
	if lower := strings.ToLower(scheme); lower == "http" || lower == "https" ||
		slices.Contains(forbiddenSchemes, lower) {
		return false
	}
	_, err := parseRedirectURI(raw, []string{scheme})
	return err == nil
}

// Open returns the client of an id that Register has returned, while the server secret that sealed
// it is kept. It refuses any other id, and every id while self-registration is off, with
// LostRegistration.
func (r *Rules) Open(id oauth.ClientID) (*Metadata, error) {
	lost := oauth.Refuse(oauth.LostRegistration, "L7", "the registration of this app does not exist any more")
	if !r.config.SelfRegistration {
		return nil, lost
	}
	sealers, err := r.registrationSealers()
	if err != nil {
		return nil, err
	}
	text := strings.TrimPrefix(id.String(), r.registeredPrefix())
	box, err := base64.RawURLEncoding.DecodeString(text)
	// The decoder skips line breaks and ignores unused bits, so other texts decode to the same box.
	if err != nil || base64.RawURLEncoding.EncodeToString(box) != text {
		return nil, lost
	}
	plain, err := sealers.Open(box)
	if err != nil {
		return nil, lost
	}
	client, err := r.unpack(plain)
	if err != nil {
		return nil, fmt.Errorf("reading an opened client_id: %w", err)
	}
	client.ID = id
	return client, nil
}

func (r *Rules) registrationSealers() (seal.Sealers, error) {
	return r.keys.Sealers(seal.Binding{Kind: "client", Owner: r.config.Issuer})
}

// What the id of a registered client says about the grant type refresh_token.
const (
	refreshUndeclared = "true" // it declares no grant types
	refreshDeclared   = "declared"
	refreshExcluded   = "false"
)

// pack returns the version and the compressed metadata.
func (m *Metadata) pack() []byte {
	refresh := refreshExcluded
	switch {
	case m.DeclaresRefresh:
		refresh = refreshDeclared
	case m.MayRefresh:
		refresh = refreshUndeclared
	}
	texts := append([]string{refresh, string(m.AuthMethod), m.Name}, m.RedirectURIs()...)
	packed := bytes.NewBuffer([]byte{registrationVersion})
	writer, _ := flate.NewWriter(packed, flate.DefaultCompression) // fails only for an unknown level
	_, _ = writer.Write(seal.PackTexts(texts...))                  // a buffer accepts every write
	_ = writer.Close()
	return packed.Bytes()
}

func (r *Rules) unpack(plain []byte) (*Metadata, error) {
	if len(plain) == 0 || plain[0] != registrationVersion {
		return nil, errors.New("it has another version")
	}
	packed, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(plain[1:])), maxPackedRegistration))
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	texts, err := seal.UnpackTexts(packed)
	if err != nil || len(texts) < 4 {
		return nil, errors.Join(errors.New("it is incomplete"), err)
	}
	client := r.newRegistered(texts[2], oauth.AuthMethod(texts[1]))
	client.MayRefresh, client.DeclaresRefresh = texts[0] != refreshExcluded, texts[0] == refreshDeclared
	for _, raw := range texts[3:] {
		client.redirects = append(client.redirects, oauth.RestoreRedirectURI(raw))
	}
	return client, nil
}
