package http_test

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

// FuzzTokenRequest sends anything to the token endpoint while one code is outstanding: every answer
// is one of RFC 6749, and unless the request was the right one, the right one succeeds afterwards.
// In the input {code}, {verifier}, {client}, {redirect}, {basic} and {secret} stand for what this
// run has.
func FuzzTokenRequest(f *testing.F) {
	site := openSite(f)
	f.Fuzz(func(t *testing.T, method, query, mediaType, authorization, body string) {
		if !slices.Contains(methods, method) || strings.ContainsAny(mediaType+authorization, "\r\n\x00") {
			return // no such request gets through
		}
		o := site.authorize(t)
		r := httptest.NewRequest(http.MethodPost, "/oauth/token", strings.NewReader(o.fill(body)))
		r.Method, r.URL.RawQuery = method, o.fill(query)
		r.Header.Set("Content-Type", mediaType)
		r.Header.Set("Authorization", o.fill(authorization))
		answer := site.send(r)
		checkAnswer(t, method, answer)
		right := o.isRight(method, o.fill(query), mediaType, o.fill(authorization), o.fill(body))
		if (answer.Code == http.StatusOK) != right {
			t.Fatalf("answered %d, and the request is right: %t: %s", answer.Code, right, answer.Body)
		}
		again := site.exchange(o.form())
		switch {
		case !right && again.Code != http.StatusOK:
			t.Fatalf("the code was lost: %d %s", again.Code, again.Body)
		case right && again.Code != http.StatusBadRequest:
			t.Fatalf("the code was spent twice: %d %s", again.Code, again.Body)
		}
	})
}

// methods are those that Echo knows, and two that it does not.
var methods = []string{"CONNECT", "DELETE", "FOO", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PROPFIND", "PUT",
	"QUERY", "REPORT", "TRACE"}

const (
	redirectURI = "https://app.example/done?x=1"
	formType    = "application/x-www-form-urlencoded"
)

// site is the whole server over a real file, without a network between.
type site struct {
	echo   *echo.Echo
	client string
	sent   uint32
}

func openSite(f testing.TB) *site {
	f.Helper()
	clients := httptest.NewTLSServer(http.HandlerFunc(publish))
	f.Cleanup(clients.Close)
	roots := x509.NewCertPool()
	roots.AddCert(clients.Certificate())
	store, err := persistence.OpenSQLite(filepath.Join(f.TempDir(), "oauth.db"))
	if err != nil {
		f.Fatal(err)
	}
	authz, err := bootstrap.NewOAuthServer(oauth.Config{
		Issuer:               "http://127.0.0.1:8080",
		VerifyBearer:         func(token string) bool { return token == "host-token" },
		AllowLoopbackIssuer:  true,
		AllowLoopbackClients: true,
		Logger:               slog.New(slog.DiscardHandler),
	}, store, bootstrap.WithRootCAs(roots))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		authz.Close()
		if err := store.Close(); err != nil {
			f.Error(err)
		}
	})
	s := &site{echo: echo.New(), client: clients.URL + "/client.json"}
	server := bootstrap.NewMCPServer(sdk.NewServer(&sdk.Implementation{Name: "fuzz", Version: "1"}, nil),
		bootstrap.WithOAuth(authz))
	if err := server.Register(s.echo); err != nil {
		f.Fatal(err)
	}
	return s
}

func publish(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"client_id": "https://" + r.Host + "/client.json", "client_name": "Fuzz",
		"redirect_uris": []string{redirectURI},
	})
}

// send comes from another address each time, so that no address fails too often.
func (s *site) send(r *http.Request) *httptest.ResponseRecorder {
	s.sent++
	r.RemoteAddr = netip.AddrFrom4([4]byte{10, byte(s.sent >> 16), byte(s.sent >> 8), byte(s.sent)}).String() + ":1"
	w := httptest.NewRecorder()
	s.echo.ServeHTTP(w, r)
	return w
}

func (s *site) post(path string, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", formType)
	return s.send(r)
}

func (s *site) exchange(form url.Values) *httptest.ResponseRecorder {
	return s.post("/oauth/token", form)
}

// outstanding is an unredeemed code.
type outstanding struct{ client, code, verifier string }

var ticketField = regexp.MustCompile(`name="ticket" value="([^"]+)"`)

func (s *site) authorize(t *testing.T) outstanding {
	t.Helper()
	o := outstanding{client: s.client, verifier: rand.Text() + rand.Text()}
	sum := sha256.Sum256([]byte(o.verifier))
	page := s.send(httptest.NewRequest(http.MethodGet, "/oauth/authorize?"+url.Values{
		"response_type":         {"code"},
		"client_id":             {o.client},
		"redirect_uri":          {redirectURI},
		"scope":                 {"mcp offline_access"},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(sum[:])},
		"code_challenge_method": {"S256"},
	}.Encode(), nil))
	ticket := ticketField.FindStringSubmatch(page.Body.String())
	if ticket == nil {
		t.Fatalf("no consent page: %d %s", page.Code, page.Body)
	}
	answer := s.post("/oauth/authorize",
		url.Values{"ticket": {ticket[1]}, "decision": {"approve"}, "bearer_token": {"host-token"}})
	target, err := url.Parse(answer.Header().Get("Location"))
	if err != nil || target.Query().Get("code") == "" {
		t.Fatalf("no code: %d %q %v", answer.Code, answer.Header(), err)
	}
	o.code = target.Query().Get("code")
	return o
}

func (o outstanding) form() url.Values {
	return url.Values{
		"grant_type":    {"authorization_code"},
		"client_id":     {o.client},
		"code":          {o.code},
		"code_verifier": {o.verifier},
		"redirect_uri":  {redirectURI},
	}
}

func (o outstanding) fill(text string) string {
	basic := func(password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(o.client)+":"+password))
	}
	return strings.NewReplacer("{code}", o.code, "{verifier}", o.verifier, "{client}", url.QueryEscape(o.client),
		"{redirect}", url.QueryEscape(redirectURI), "{basic}", basic(""), "{secret}", basic("secret")).Replace(text)
}

var (
	errorCodes = []string{"invalid_request", "invalid_client", "invalid_grant", "unsupported_grant_type",
		"invalid_scope", "invalid_target"}
	statuses = []int{http.StatusOK, http.StatusNoContent, http.StatusBadRequest, http.StatusUnauthorized,
		http.StatusMethodNotAllowed,
		http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong}
	sentence = regexp.MustCompile(`^[\x20\x21\x23-\x5B\x5D-\x7E]+$`)
)

// checkAnswer holds every answer to the headers and bodies of RFC 6749 §5.
func checkAnswer(t *testing.T, method string, answer *httptest.ResponseRecorder) {
	t.Helper()
	header := answer.Header()
	if !slices.Contains(statuses, answer.Code) || header.Get("Location") != "" || header.Get("Set-Cookie") != "" ||
		header.Get("Access-Control-Allow-Origin") != "*" {
		t.Fatalf("%s is answered with %d %q %s", method, answer.Code, header, answer.Body)
	}
	if answer.Code == http.StatusNoContent {
		if method != http.MethodOptions || answer.Body.Len() > 0 {
			t.Fatalf("%s is answered with 204 %s", method, answer.Body)
		}
		return
	}
	if header.Get("Content-Type") != "application/json" || header.Get("Cache-Control") != "no-store" ||
		header.Get("Pragma") != "no-cache" {
		t.Fatalf("%s is answered with the headers %q", method, header)
	}
	if (answer.Code == http.StatusUnauthorized) != (header.Get("WWW-Authenticate") != "") ||
		(answer.Code == http.StatusMethodNotAllowed) != (header.Get("Allow") != "") {
		t.Fatalf("%d is answered with the headers %q", answer.Code, header)
	}
	checkBody(t, answer)
}

func checkBody(t *testing.T, answer *httptest.ResponseRecorder) {
	t.Helper()
	var body struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
		Access      string `json:"access_token"`
	}
	decoder := json.NewDecoder(answer.Body)
	if err := decoder.Decode(&body); err != nil || decoder.Decode(new(any)) != io.EOF {
		t.Fatalf("%d has no JSON object: %v", answer.Code, err)
	}
	refused := slices.Contains(errorCodes, body.Error) && sentence.MatchString(body.Description)
	if refused == (answer.Code == http.StatusOK) || refused == strings.HasPrefix(body.Access, "ppa_") {
		t.Fatalf("%d says %+v", answer.Code, body)
	}
}
