package oauth

import (
	"crypto/rand"
	"reflect"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// FuzzTicket opens what was sealed, all of it, and nothing else: the splice replaces some of the
// sealed text.
func FuzzTicket(f *testing.F) {
	RegisterTestingT(f)
	settings := settingsOf()
	f.Fuzz(func(t *testing.T, name, state, redirect string, at, cut uint16, splice string) {
		request, err := requestOf(settings, name, state, redirect)
		if err != nil {
			return
		}
		ticket, err := NewTicket(request, rand.Reader, noon)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := ticket.Seal()
		if err != nil {
			t.Fatal(err)
		}
		opened, err := OpenTicket(sealed, settings, noon.Add(time.Minute))
		if err != nil || !reflect.DeepEqual(opened, ticket) {
			t.Fatalf("sealed %+v and opened %+v: %v", request, opened, err)
		}
		checkSealed(t, settings, sealed, spliced(sealed, int(at), int(cut), splice))
		checkReturn(t, settings, request.answer("error", "access_denied"))
	})
}

func requestOf(settings *Settings, name, state, redirect string) (*AuthorizationRequest, error) {
	client := Client{ID: RestoreClientID(clientURL), Name: name, AuthMethod: PublicClient}
	return NewAuthorizationRequest(client, RestoreRedirectURI(redirect), Parameters{
		"response_type":         {"code"},
		"state":                 {state},
		"scope":                 {"mcp offline_access"},
		"code_challenge":        {challengeOf(verifier)},
		"code_challenge_method": {"S256"},
	}, settings)
}

func spliced(text string, at, cut int, splice string) string {
	at %= len(text) + 1
	return text[:at] + splice + text[min(at+cut, len(text)):]
}

func checkSealed(t *testing.T, settings *Settings, sealed, changed string) {
	t.Helper()
	for _, forged := range []string{changed, changed + sealed} {
		if forged == sealed {
			continue
		}
		_, err := OpenTicket(forged, settings, noon)
		if kind, _ := KindOf(err); kind != InvalidTicket {
			t.Fatalf("opened %q in place of %q: %v", forged, sealed, err)
		}
	}
	if _, err := OpenReturn(sealed, settings, noon); err == nil {
		t.Fatal("opened a consent ticket as a return ticket")
	}
}

func checkReturn(t *testing.T, settings *Settings, redirect Redirect) {
	t.Helper()
	sealed, err := SealReturn(redirect, settings, noon)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := OpenReturn(sealed, settings, noon)
	if err != nil || opened.Location != redirect.Location || opened.Host != redirect.Host {
		t.Fatalf("kept %+v and opened %+v: %v", redirect, opened, err)
	}
	if _, err := OpenTicket(sealed, settings, noon); err == nil {
		t.Fatal("opened a return ticket as a consent ticket")
	}
}
