package cimd

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pasteport/pasteport/adapters/internal/strictjson"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// FuzzDocument compares the decoder with the standard library's: both find the same members, and a
// client has its own client_id and allowed redirect URIs.
func FuzzDocument(f *testing.F) {
	id := oauth.RestoreClientID("https://client.example/client.json")
	f.Fuzz(func(t *testing.T, body []byte) {
		members, err := strictjson.Object(body)
		reference, wellFormed := lenient(body)
		if strict := wellFormed && !repeats(body) && utf8.Valid(body) &&
			!bytes.Contains(body, []byte(`\u`)); err != nil {
			if strict && depth(body) <= 8 {
				t.Fatalf("refused the well-formed %q: %v", body, err)
			}
			return
		}
		if !wellFormed || repeats(body) || !utf8.Valid(body) || depth(body) > 8 {
			t.Fatalf("accepted %q as %v", body, members)
		}
		if !reflect.DeepEqual(members, reference) {
			t.Fatalf("read %q as %v and not as %v", body, members, reference)
		}
		if metadata, err := new(client.Rules).NewMetadata(id, members); err == nil {
			checkClient(t, metadata, body)
		}
	})
}

// lenient decodes one object with encoding/json, without members that are null; ok is false for any
// other value.
func lenient(body []byte) (members map[string]any, ok bool) {
	err := json.Unmarshal(body, &members)
	found := members != nil
	maps.DeleteFunc(members, func(_ string, value any) bool { return value == nil })
	return members, err == nil && found
}

// repeats reports whether any object has two members with the same name.
func repeats(body []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(body))
	return repeatsIn(decoder)
}

func repeatsIn(decoder *json.Decoder) bool {
	token, err := decoder.Token()
	if err != nil || token != json.Delim('{') && token != json.Delim('[') {
		return false
	}
	names, found := map[any]bool{}, false
	for decoder.More() {
		if token == json.Delim('{') {
			name, err := decoder.Token()
			if err != nil {
				return found
			}
			found = found || names[name]
			names[name] = true
		}
		found = repeatsIn(decoder) || found
	}
	_, _ = decoder.Token()
	return found
}

// depth returns the nesting of lists and objects.
func depth(body []byte) (most int) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	for now := 0; ; most = max(most, now) {
		token, err := decoder.Token()
		switch {
		case errors.Is(err, io.EOF), err != nil:
			return most
		case token == json.Delim('{'), token == json.Delim('['):
			now++
		case token == json.Delim('}'), token == json.Delim(']'):
			now--
		}
	}
}

// checkClient reads the members again, by their exact names.
func checkClient(t *testing.T, metadata *client.Metadata, body []byte) {
	t.Helper()
	var raw map[string]json.RawMessage
	var id, name string
	var redirects []string
	for member, target := range map[string]any{"client_id": &id, "client_name": &name, "redirect_uris": &redirects} {
		if err := errors.Join(json.Unmarshal(body, &raw), json.Unmarshal(raw[member], target)); err != nil {
			t.Fatalf("accepted %q, whose %s is wrong: %v", body, member, err)
		}
	}
	switch {
	case id != metadata.ID.String() || !metadata.DeclaresID:
		t.Fatalf("accepted %q, which names %q", body, id)
	case name != metadata.Name || strings.TrimSpace(name) == "" || utf8.RuneCountInString(name) > 200:
		t.Fatalf("accepted %q, whose name is %q", body, name)
	case isSet(raw["client_secret"]) || isSet(raw["client_secret_expires_at"]):
		t.Fatalf("accepted %q with a secret", body)
	}
	checkTargets(t, metadata, redirects)
}

// checkTargets checks that exactly the allowed redirect URIs of the document are usable.
func checkTargets(t *testing.T, metadata *client.Metadata, redirects []string) {
	t.Helper()
	usable := 0
	for _, raw := range redirects {
		target, err := metadata.RedirectURI(raw)
		if raw == "" || err != nil {
			continue
		}
		if usable++; target.String() != raw || !canBeAnswered(raw) {
			t.Fatalf("allowed the redirect URI %q", raw)
		}
	}
	if usable == 0 || len(redirects) > 50 || metadata.IgnoredRedirects != len(redirects)-usable {
		t.Fatalf("of the redirect URIs %q %d can be used, and %d are ignored", redirects, usable,
			metadata.IgnoredRedirects)
	}
}

// canBeAnswered reports whether a browser can be redirected there without duplicate parameters.
func canBeAnswered(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		// Browsers are less strict.
		return strings.HasPrefix(raw, "https://") || strings.HasPrefix(raw, "http://localhost")
	}
	answers := slices.ContainsFunc([]string{"code", "state", "iss", "error"}, u.Query().Has)
	local := slices.Contains([]string{"127.0.0.1", "::1", "localhost"}, u.Hostname())
	return u.User == nil && u.Hostname() != "" && !answers && (u.Scheme == "https" || u.Scheme == "http" && local)
}

// isSet reports whether a member is there and not null.
func isSet(raw json.RawMessage) bool { return raw != nil && string(raw) != "null" }
