package client_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
	"github.com/pasteport/pasteport/domain/uri"
)

func fuzzedRegistration(f *testing.F) *client.Rules {
	f.Helper()
	rules, err := client.NewRules(oauth.Config{
		Issuer:           "https://cms.example",
		SelfRegistration: true,
		Secret:           []byte("a secret that is not only zeroes"),
	})
	if err != nil {
		f.Fatal(err)
	}
	return rules
}

// FuzzRegistration registers only clients whose id opens to the same metadata and whose redirect
// URIs are safe.
func FuzzRegistration(f *testing.F) {
	rules := fuzzedRegistration(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		var members map[string]any
		if json.Unmarshal(body, &members) != nil || members == nil {
			return
		}
		registered, err := rules.Register(members)
		if err != nil {
			if kind, _ := oauth.KindOf(err); kind != oauth.InvalidRedirectURI && kind != oauth.InvalidClientMetadata {
				t.Fatalf("refused %q as %s", body, kind)
			}
			return
		}
		id, err := rules.ParseID(registered.ID.String())
		if err != nil || len(id.String()) >= 2000 {
			t.Fatalf("%q got the id %q: %v", body, registered.ID, err)
		}
		opened, err := rules.Open(id)
		if err != nil || opened.Name != registered.Name || opened.MayRefresh != registered.MayRefresh ||
			!slices.Equal(opened.RedirectURIs(), registered.RedirectURIs()) {
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
	host, _ := uri.SplitPort(authority)
	switch {
	case !slices.Contains(asked, any(raw)), strings.ContainsAny(raw, "#\\ "):
		t.Fatalf("registered %q", raw)
	case scheme == "http" && !slices.Contains([]string{"127.0.0.1", "[::1]", "localhost"}, host):
		t.Fatalf("registered plain http to %q", raw)
	case scheme != "http" && scheme != "https" && !slices.Contains(client.KnownAppSchemes, scheme):
		t.Fatalf("registered the scheme of %q", raw)
	}
}

// FuzzRegisteredClientID opens no id but the one that was issued.
func FuzzRegisteredClientID(f *testing.F) {
	rules := fuzzedRegistration(f)
	f.Fuzz(func(t *testing.T, raw string) {
		id, err := rules.ParseID(raw)
		if err == nil && rules.IsSelfRegistered(id) {
			_, err = rules.Open(id)
		}
		kind, refused := oauth.KindOf(err)
		switch {
		case err != nil && (!refused || kind != oauth.MalformedClientID && kind != oauth.LostRegistration):
			t.Fatalf("%q: %v", raw, err)
		case err == nil && rules.IsSelfRegistered(id) && raw != issuedID:
			t.Fatalf("opened %q", raw)
		case raw == issuedID && err != nil:
			t.Fatalf("the issued id does not open any more: %v", err)
		}
		if _, err := rules.Open(oauth.RestoreClientID(raw)); err == nil && raw != issuedID {
			t.Fatalf("opened %q without parsing it", raw)
		}
	})
}

// issuedID was issued once under the secret of fuzzedRegistration. Every later version has to open
// it.
const issuedID = "https://cms.example/oauth/clients/" +
	"ZYXyAYL3tUpIxLcoJmzXZYBvaDe8v_T_AAjh6o8o7_6ulPWRyPGiT3L-" +
	"A7YNTtBvaIAigIvPMAdbGUWKKwkf-pJlew7EAQsXr6DXVPBLNNdV0NJ3LhL-CGbFPKuV4JV9xoiwmnvXeNzVtlT6rpwCZZk"
