package oauth

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pasteport/pasteport/domain/seal"
)

func fuzzedRegistration(f *testing.F) *Settings {
	f.Helper()
	config := Config{Issuer: "https://cms.example"}
	secret := seal.FixedSecrets{[]byte("a secret that is not only zeroes")}
	return &Settings{
		Issuer:           config.Issuer,
		SelfRegistration: true,
		Keys:             seal.NewKeyRing(secret),
		ClientID:         ClientIDRules{ForbidHost: "cms.example", Registered: config.Issuer + RegisteredClientsPath},
	}
}

// FuzzRegistration registers only clients whose id opens to the same metadata and whose redirect
// URIs are safe.
func FuzzRegistration(f *testing.F) {
	settings := fuzzedRegistration(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		var members map[string]any
		if json.Unmarshal(body, &members) != nil || members == nil {
			return
		}
		client, err := settings.RegisterClient(members)
		if err != nil {
			if kind, _ := KindOf(err); kind != InvalidRedirectURI && kind != InvalidClientMetadata {
				t.Fatalf("refused %q as %s", body, kind)
			}
			return
		}
		id, err := ParseClientID(client.ID().String(), settings.ClientID)
		if err != nil || len(id.String()) >= 2000 {
			t.Fatalf("%q got the id %q: %v", body, client.ID(), err)
		}
		opened, err := settings.OpenClient(id)
		if err != nil || opened.Name() != client.Name() || opened.MayRefresh() != client.MayRefresh() ||
			!slices.Equal(opened.RedirectURIs(), client.RedirectURIs()) {
			t.Fatalf("%q became %+v: %v", body, opened, err)
		}
		if _, secret := members["client_secret"]; secret || len(opened.RedirectURIs()) == 0 ||
			len(opened.RedirectURIs()) > 10 {
			t.Fatalf("accepted %q", body)
		}
		for _, raw := range opened.RedirectURIs() {
			checkRegistered(t, raw, members)
		}
	})
}

// checkRegistered holds a registered redirect URI to what a browser would make of it.
func checkRegistered(t *testing.T, raw string, members map[string]any) {
	t.Helper()
	asked, _ := members["redirect_uris"].([]any)
	scheme, rest, _ := strings.Cut(raw, ":")
	authority, _, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "/")
	host, _ := splitPort(authority)
	switch {
	case !slices.Contains(asked, any(raw)), strings.ContainsAny(raw, "#\\ "):
		t.Fatalf("registered %q", raw)
	case scheme == "http" && !slices.Contains([]string{"127.0.0.1", "[::1]", "localhost"}, host):
		t.Fatalf("registered plain http to %q", raw)
	case scheme != "http" && scheme != "https" && !slices.Contains(knownAppSchemes, scheme):
		t.Fatalf("registered the scheme of %q", raw)
	}
}

// FuzzRegisteredClientID opens no id but the one that was issued.
func FuzzRegisteredClientID(f *testing.F) {
	settings := fuzzedRegistration(f)
	f.Fuzz(func(t *testing.T, raw string) {
		id, err := ParseClientID(raw, settings.ClientID)
		if err == nil && settings.IsSelfRegistered(id) {
			_, err = settings.OpenClient(id)
		}
		kind, refused := KindOf(err)
		switch {
		case err != nil && (!refused || kind != MalformedClientID && kind != LostRegistration):
			t.Fatalf("%q: %v", raw, err)
		case err == nil && settings.IsSelfRegistered(id) && raw != issuedID:
			t.Fatalf("opened %q", raw)
		case raw == issuedID && err != nil:
			t.Fatalf("the issued id does not open any more: %v", err)
		}
		if _, err := settings.OpenClient(RestoreClientID(raw)); err == nil && raw != issuedID {
			t.Fatalf("opened %q without parsing it", raw)
		}
	})
}

// issuedID was issued once under the secret of fuzzedRegistration. Every later version has to open
// it.
const issuedID = "https://cms.example/oauth/clients/" +
	"ZYXyAYL3tUpIxLcoJmzXZYBvaDe8v_T_AAjh6o8o7_6ulPWRyPGiT3L-" +
	"A7YNTtBvaIAigIvPMAdbGUWKKwkf-pJlew7EAQsXr6DXVPBLNNdV0NJ3LhL-CGbFPKuV4JV9xoiwmnvXeNzVtlT6rpwCZZk"
