package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/suite"
)

func TestDoctor(t *testing.T) {
	suite.Run(t, "Doctor")
}

// script holds the responses of a server. In every text, ISSUER stands for its own address,
// and STATE for the state of the request.
type script struct{ challenge, resource, server, page, location, token string }

const hostToken = "host-token-of-the-specs"

var honest = script{
	challenge: `Bearer resource_metadata="ISSUER/.well-known/oauth-protected-resource/mcp"`,
	resource:  `{"resource":"ISSUER/mcp","authorization_servers":["ISSUER"]}`,
	server: `{"issuer":"ISSUER","authorization_endpoint":"ISSUER/authorize","token_endpoint":"ISSUER/token",` +
		`"revocation_endpoint":"ISSUER/revoke","response_types_supported":["code"],` +
		`"code_challenge_methods_supported":["S256"],"token_endpoint_auth_methods_supported":["none"],` +
		`"client_id_metadata_document_supported":true}`,
	page: `<title>Hello</title><form action="/authorize"><input name="ticket" value="STATE"><input ` +
		`name="bearer_token"></form>`,
	location: redirect + "?code=code-of-the-specs&state=STATE&iss=ISSUER",
	token: `{"access_token":"access-of-the-specs","refresh_token":"refresh-of-the-specs","token_type":"Bearer",` +
		`"error":"invalid_grant"}`,
}

// serve returns a handler that responds from the script.
func (s script) serve(address string) http.Handler {
	mux := http.NewServeMux()
	say := func(pattern string, status int, mediaType, text string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", mediaType)
			w.Header().Set("WWW-Authenticate", strings.ReplaceAll(s.challenge, "ISSUER", address))
			state := cmp.Or(r.FormValue("state"), r.FormValue("ticket")) // the form has the state as its ticket
			if status == http.StatusSeeOther {
				w.Header().Set("Location", strings.NewReplacer("ISSUER", address, "STATE", state).Replace(s.location))
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, strings.NewReplacer("ISSUER", address, "STATE", state).Replace(text))
		})
	}
	say("/mcp", 401, "text/plain", "")
	say("GET /.well-known/oauth-protected-resource/mcp", 200, jsonType, s.resource)
	say("GET /.well-known/oauth-authorization-server", 200, jsonType, s.server)
	say("GET /authorize", 200, "text/html", s.page)
	if s.location == "" {
		say("POST /authorize", 502, "text/html", s.page)
	} else {
		say("POST /authorize", 303, "text/html", s.page)
	}
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		w.Header().Set("Cache-Control", "no-store")
		if strings.Contains(r.FormValue("code"), "doctor") {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = io.WriteString(w, s.token)
	})
	return mux
}

// examined returns the report about a server with the script. All connections go to that server,
// regardless of the address.
func examined(s script) []result {
	server := httptest.NewUnstartedServer(nil)
	address := "http://" + server.Listener.Addr().String()
	server.Config.Handler = s.serve(address)
	server.Start()
	defer server.Close()
	endpoint, _ := url.Parse(address + "/mcp")
	p := newProbe(&options{endpoint: endpoint, token: hostToken, limit: 2 * time.Second})
	p.transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}
	results, err := p.examine(context.Background(), func(result) {})
	if err != nil {
		panic(err)
	}
	return results
}

// unfit describes the first secret, control character or overlong text in a report, or returns "".
func unfit(results []result, secrets ...string) string {
	for _, r := range results {
		text := r.Seen + r.Fix
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				return fmt.Sprintf("%s shows %s", r.Name, secret)
			}
		}
		if strings.ContainsFunc(text, unicode.IsControl) || len(r.Seen) > maxText+len("…") {
			return fmt.Sprintf("%s shows %q", r.Name, text)
		}
	}
	return ""
}

// of returns the result of a check.
func of(results []result, name string) result {
	i := slices.IndexFunc(results, func(r result) bool { return r.Name == name })
	return results[i]
}

var _ = Describe("Checking a malicious server", func() {
	It("asks eleven questions", func() {
		results := examined(honest)
		Expect(results).To(HaveLen(11))
		Expect(results).To(HaveEach(HaveField("Seen", Not(BeEmpty()))))
		Expect(of(results, "token").Status).To(Equal(passed), "the script supports the login up to the session")
	})

	DescribeTable("fails the check and shows neither secrets nor control characters",
		func(change func(*script), id string) {
			s := honest
			change(&s)
			r := examined(s)
			Expect(of(r, id).Status).To(Equal(failed))
			Expect(unfit(r, hostToken, "code-of-the-specs")).To(BeEmpty())
		},
		Entry("when the document is endless", func(s *script) {
			s.resource = `{"x":"` + strings.Repeat("x", maxBody) + `"}`
		}, "resource"),
		Entry("when an endpoint is a script URL", func(s *script) {
			s.server = strings.Replace(s.server, "ISSUER/token", "javascript:1", 1)
		}, "server"),
		Entry("when the form posts to another server", func(s *script) {
			s.page = strings.Replace(s.page, "/authorize", "https://thief.example/", 1)
		}, "login"),
		Entry("when the redirect sends the token to another site", func(s *script) {
			s.location = "https://thief.example/?" + hostToken
		}, "login"),
		Entry("when the title holds the token and a terminal escape", func(s *script) {
			s.page, s.location = "<title>\x1b[31m"+hostToken+"</title>"+s.page, ""
		}, "login"),
	)
})

var _ = It("hides the values of fields, unless they are too short for a secret", func() {
	p := newProbe(&options{fields: map[string]string{"user": "a", "key": "key-of-ann"}})
	Expect(p.clean("a page for key-of-ann")).To(Equal("a page for [secret]"))
})

// FuzzExamine checks servers with arbitrary responses: nothing panics, and no secret or control
// character is shown.
func FuzzExamine(f *testing.F) {
	f.Add(honest.challenge, honest.resource, honest.server, honest.page, honest.location, honest.token)
	f.Add(`Bearer`, `{}`, `{"issuer":[]}`, `<form>`, `//x`, hostToken)
	f.Fuzz(func(t *testing.T, challenge, resource, server, page, location, token string) {
		r := examined(script{challenge, resource, server, page, location, token})
		if shown := unfit(r, hostToken); shown != "" {
			t.Error(shown)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	})
}
