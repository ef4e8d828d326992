package http_test

import (
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// isRight is the reference for a request that redeems the code.
func (o outstanding) isRight(method, query, mediaType, authorization, body string) bool {
	form, err := url.ParseQuery(body)
	asked, queryErr := url.ParseQuery(query)
	media, _, mediaErr := mime.ParseMediaType(mediaType)
	if method != http.MethodPost || err != nil || queryErr != nil || mediaErr != nil || media != formType ||
		len(body) > 32<<10 || len(query) > 24<<10 {
		return false
	}
	named := url.Values{"client_id": form["client_id"]}
	if user, password, ok := basicPair(authorization); ok && password == "" && named.Get("client_id") == "" {
		decoded, _ := url.QueryUnescape(user)
		named.Set("client_id", decoded)
	}
	return named.Get("client_id") == o.client && form.Get("code") == o.code &&
		form.Get("code_verifier") == o.verifier &&
		form.Get("grant_type") == "authorization_code" &&
		(form.Get("redirect_uri") == "" || form.Get("redirect_uri") == redirectURI) &&
		plain(form) && !slices.ContainsFunc(reserved, asked.Has) && fits(form) &&
		!hasCredentials(authorization, o.client)
}

// reserved may not stand in the URL.
var reserved = []string{"grant_type", "code", "code_verifier", "redirect_uri", "refresh_token", "scope", "resource",
	"client_id",
	"client_secret", "client_assertion", "client_assertion_type", "token", "token_type_hint"}

// plain reports whether nothing but the resource is repeated and no credential is sent.
func plain(form url.Values) bool {
	for name, values := range form {
		if len(values) > 1 && name != "resource" {
			return false
		}
	}
	return form.Get("client_secret")+form.Get("client_assertion")+form.Get("client_assertion_type") == ""
}

var (
	scopeText = regexp.MustCompile(`^[\x20\x21\x23-\x5B\x5D-\x7E]*$`)
	protected = regexp.MustCompile(`^((?i:http)://127\.0\.0\.1:8080/mcp/?)?$`)
)

// fits reports whether scope and resource are what was granted.
func fits(form url.Values) bool {
	text := form.Get("scope")
	words := strings.Fields(text)
	granted := slices.ContainsFunc(words, func(w string) bool { return w == "mcp" || w == "offline_access" })
	return len(text) <= 1024 && scopeText.MatchString(text) && (granted || len(words) == 0) &&
		!slices.ContainsFunc(form["resource"], func(resource string) bool { return !protected.MatchString(resource) })
}

// hasCredentials reports whether a Basic header is malformed, has a password or names another
// client.
func hasCredentials(authorization, client string) bool {
	if scheme, _, _ := strings.Cut(authorization, " "); !strings.EqualFold(scheme, "Basic") {
		return false
	}
	user, password, ok := basicPair(authorization)
	decoded, err := url.QueryUnescape(user)
	return !ok || err != nil || password != "" || decoded != "" && decoded != client
}

// basicPair returns the user and the password of a Basic header, with the last colon between them.
func basicPair(authorization string) (user, password string, ok bool) {
	user, password, ok = (&http.Request{Header: http.Header{"Authorization": {authorization}}}).BasicAuth()
	pair := user + ":" + password
	last := strings.LastIndex(pair, ":")
	return pair[:last], pair[last+1:], ok
}
