package credential_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/pasteport/pasteport/domain/credential"
)

// FuzzRedact puts a secret into a text in each spelling and expects that it is replaced.
func FuzzRedact(f *testing.F) {
	f.Add("cms_4711/+x==", "Get \"https://cms.example/me?key=", "\": EOF")
	f.Add("ä key with spaces", "no answer for ", "")
	f.Add(`quoted "\ key`, "\x00", "aaaa")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		if strings.ContainsAny(secret, "[]") || strings.Contains("[redacted]", strings.ToLower(secret)) {
			t.Skip("the replacement itself may contain it")
		}
		if credential.HasControl(secret) || strings.ContainsAny(secret, "\u2028\u2029") {
			t.Skip("no header can carry it, or Go escapes it in JSON although browsers need not")
		}
		quoted, err := json.Marshal(secret)
		if err != nil {
			t.Fatal(err)
		}
		for _, spelling := range []string{
			secret, url.QueryEscape(secret), url.PathEscape(secret), string(quoted[1 : len(quoted)-1]),
			hex.EncodeToString([]byte(secret)),
		} {
			expectRedacted(t, secret, before+spelling+after, spelling)
		}
		encoded := base64.StdEncoding.EncodeToString([]byte(before + secret + after))
		expectRedacted(t, secret, "Basic "+encoded, encoded)
		expectRedacted(t, secret, "Basic "+base64.RawURLEncoding.EncodeToString([]byte(before+secret+after)), encoded)
	})
}

func expectRedacted(t *testing.T, secret, text, spelling string) {
	t.Helper()
	redacted, ok := credential.Fields(nil).Redact(text, credential.Values{credential.Token: secret})
	if !ok && redacted == "" || secret == "" {
		return
	}
	if strings.Contains(redacted, secret) || strings.Contains(redacted, spelling) ||
		!strings.Contains(redacted, "[redacted]") {
		t.Errorf("%q leaves %q of %q", secret, redacted, text)
	}
}
