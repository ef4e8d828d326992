package guard

import (
	"crypto/rand"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/uri"
)

// FuzzChallenge writes challenges for every resource and scope that start-up accepts, and reads
// them back with a parser of RFC 9110 §11.6.1.
func FuzzChallenge(f *testing.F) {
	f.Fuzz(func(t *testing.T, resource, scope string, which uint8) {
		scopes, err := oauth.ParseScopes(scope)
		if err != nil || !startsUp(resource, scopes) {
			return
		}
		refused := []refusal{missingToken.with(scopes), invalidToken.with(scopes), insufficientScope.with(scopes),
			malformedCredentials}[which%4]
		origin, path := uri.SplitOrigin(resource)
		answer := httptest.NewRecorder()
		(&Guard{metadataURL: origin + wellKnown + path}).refuse(answer, refused)
		header := answer.Header().Values("WWW-Authenticate")
		if len(header) != 1 || answer.Code != refused.status {
			t.Fatalf("answered %d with %q", answer.Code, header)
		}
		read, ok := readChallenge(header[0])
		if want := wanted(resource, refused); !ok || !slices.Equal(read, want) {
			t.Fatalf("wrote %q, which reads as %q and not as %q", header[0], read, want)
		}
	})
}

func startsUp(resource string, scopes oauth.Scopes) bool {
	config := oauth.Config{
		Issuer:              "https://cms.example",
		Resource:            resource,
		VerifyBearer:        func(string) bool { return true },
		Secret:              make([]byte, 32),
		AllowLoopbackIssuer: true,
		Now:                 time.Now,
		Random:              rand.Reader,
	}
	for _, name := range scopes.Values() {
		config.Scopes = append(config.Scopes, oauth.Scope{Name: name})
	}
	_, err := config.Settings()
	return err == nil && resource != ""
}

// wanted returns the names and values of the parameters, in a fixed order.
func wanted(resource string, refused refusal) (parameters [][2]string) {
	u, _ := url.Parse(resource) // Config.Settings has checked it
	metadata := u.Scheme + "://" + u.Host + "/.well-known/oauth-protected-resource" + u.EscapedPath()
	for _, parameter := range [][2]string{
		{"resource_metadata", metadata}, {"error", refused.code}, {"error_description", refused.description},
		{"scope", refused.scope.String()},
	} {
		if parameter[1] != "" {
			parameters = append(parameters, parameter)
		}
	}
	return parameters
}

const authParam = "([!#$%&'*+.^_`|~0-9A-Za-z-]+)=\"([\\x20\\x21\\x23-\\x5B\\x5D-\\x7E]*)\""

var (
	oneChallenge = regexp.MustCompile(`^Bearer ` + authParam + `(, ` + authParam + `)*$`)
	eachParam    = regexp.MustCompile(authParam)
)

// readChallenge reads a header that is one Bearer challenge whose values are quoted and hold
// neither quote nor backslash.
func readChallenge(header string) (parameters [][2]string, ok bool) {
	if !oneChallenge.MatchString(header) {
		return nil, false
	}
	for _, found := range eachParam.FindAllStringSubmatch(header, -1) {
		parameters = append(parameters, [2]string{found[1], found[2]})
	}
	return parameters, true
}
