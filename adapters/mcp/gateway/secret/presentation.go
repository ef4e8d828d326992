// Package secret adds a person's credential to the requests for a server, in headers or parameters
// of the query, or to the environment of a program. Parse and ParseEnvironment read templates into
// a Presentation, which renders Credentials from the values of one person's fields.
package secret

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/pasteport/pasteport/domain/credential"
)

// DefaultEntry presents a token as bearer token.
const DefaultEntry = "Authorization: Bearer {token}"

// Presentation is the headers, query parameters or variables that present a credential.
type Presentation struct {
	entries   []entry
	fields    credential.Fields
	isDefault bool
}

// entry is a header, whose name has its canonical form, a query parameter or a variable.
type entry struct {
	kind, name string
	value      template
}

const (
	header    = "header"
	parameter = "query parameter"
	variable  = "variable"
)

// String names the entry for errors.
func (e entry) String() string { return "the " + e.kind + " " + e.name }

// Parse reads entries such as "X-Api-Key: {token}" and "?key={token}" with the names of fields.
// Without fields there is one, the token; without entries, DefaultEntry. It returns one error for
// each mistake, which begins with the number of the entry if there are several, and does not repeat
// its value.
func Parse(texts []string, fields credential.Fields) (Presentation, []error) {
	p, names := Presentation{fields: fields}, fields.Names()
	if len(texts) == 0 { // the default entry names the token, whatever the fields are
		p.isDefault, texts, names = true, []string{DefaultEntry}, append(names, credential.Token)
	}
	var mistakes []error
	for i, text := range texts {
		next, err := parseEntry(text, names)
		if err == nil && slices.ContainsFunc(p.entries, func(e entry) bool { return e.String() == next.String() }) {
			err = fmt.Errorf("an entry before it sets %s already: keep one", next)
		}
		if err != nil && len(texts) > 1 {
			err = fmt.Errorf("number %d: %w", i+1, err)
		}
		if err != nil {
			mistakes = append(mistakes, err)
		}
		p.entries = append(p.entries, next)
	}
	return p, mistakes
}

func parseEntry(text string, fields []string) (e entry, err error) {
	var found bool
	var value string
	if rest, isParameter := strings.CutPrefix(text, "?"); isParameter {
		e.kind = parameter
		if e.name, value, found = strings.Cut(rest, "="); !found || e.name == "" || Escape(e.name) != e.name {
			return e, errors.New(`it is not a query parameter: write it like "?key={token}", with letters, digits, ` +
				`"-", "_", "." and "~" in its name`)
		}
	} else {
		e.kind = header
		if e.name, value, found = strings.Cut(text, ":"); !found || !httpguts.ValidHeaderFieldName(e.name) {
			return e, errors.New(
				`it is not a header: write it like "X-Api-Key: {token}", or a query parameter like "?key={token}"`)
		}
		if IsReserved(textproto.CanonicalMIMEHeaderKey(e.name)) {
			return e, fmt.Errorf("the gateway itself sets or forwards %s: choose another", e)
		}
		value = strings.Trim(value, " ")
	}
	e.value, err = parseTemplate(value, fields, e.kind == parameter)
	if err == nil && (value == "" || credential.HasControl(value)) {
		err = fmt.Errorf("%s has no value or a control character: write it in one line", e)
	}
	if e.kind == header {
		e.name = textproto.CanonicalMIMEHeaderKey(e.name)
	}
	return e, err
}

// ParseEnvironment reads templates such as "{token}" by the names of their variables. It returns
// one error for each mistake, which does not repeat the template.
func ParseEnvironment(templates map[string]string, fields credential.Fields) (Presentation, []error) {
	p := Presentation{fields: fields}
	var mistakes []error
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		value, err := parseTemplate(templates[name], fields.Names(), false)
		next := entry{variable, name, value}
		switch {
		case !IsVariable(name):
			err = errors.New("the environment has a name that no variable can have: write letters, digits and " +
				"underscores")
		case strings.ContainsRune(templates[name], 0):
			err = fmt.Errorf("%s contains NUL, which no environment can: remove it", next)
		case err != nil:
			err = fmt.Errorf("%s: %w", next, err)
		}
		if err != nil {
			mistakes = append(mistakes, err)
		}
		p.entries = append(p.entries, next)
	}
	return p, mistakes
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// IsVariable reports whether the text is the name of a POSIX environment variable.
func IsVariable(text string) bool { return variableName.MatchString(text) }

// Take removes the first header that has a token and nothing else than the literal text of its
// entry, and returns the token; "" for none.
func (p Presentation) Take(headers http.Header) string {
	const mark = "\x00" // which no header has
	for _, e := range p.entries {
		before, after, found := strings.Cut(e.value.render(credential.Values{credential.Token: mark}), mark)
		text, begins := strings.CutPrefix(strings.Join(headers[e.name], ","), before)
		text, ends := strings.CutSuffix(text, after)
		if found && begins && ends && text != "" && e.kind == header {
			delete(headers, e.name)
			return text
		}
	}
	return ""
}

// IsSet reports whether the operator has chosen how the credential is sent.
func (p Presentation) IsSet() bool { return !p.isDefault }

// Unused returns the names of the fields that no entry presents.
func (p Presentation) Unused() []string {
	return slices.DeleteFunc(p.fields.Names(), func(name string) bool {
		return slices.ContainsFunc(p.entries, func(e entry) bool { return slices.Contains(e.value.used, name) })
	})
}

// Sent describes how the credential is sent, without literal text of templates, which may be
// secret.
func (p Presentation) Sent() string {
	if p.isDefault {
		return "as bearer token in the header Authorization"
	}
	var all []string
	for _, e := range p.entries {
		all = append(all, "in "+e.String())
	}
	return strings.Join(all, " and ")
}

// reserved are headers that belong to the connection, the message or the client.
var reserved = []string{
	"Host", "Content-Length", "Content-Type", "Content-Encoding", "Content-Digest", "Forwarded", "Origin", "Signature",
	"Signature-Input", "X-Request-Id",
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Expect",
	"Accept", "Accept-Encoding", "Accept-Language", "Last-Event-Id", "User-Agent", "Traceparent", "Tracestate",
}

// IsReserved reports whether the gateway itself sets or forwards a header, or never forwards it.
func IsReserved(name string) bool {
	return slices.Contains(reserved, name) ||
		slices.ContainsFunc([]string{"Mcp-", "X-Pasteport-", "X-Forwarded-"}, func(prefix string) bool {
			return strings.HasPrefix(name, prefix)
		})
}

// Headers returns the names of the headers.
func (p Presentation) Headers() []string { return p.names(header) }

// Parameters returns the names of the query parameters.
func (p Presentation) Parameters() []string { return p.names(parameter) }

// Variables returns the names of the environment variables.
func (p Presentation) Variables() []string { return p.names(variable) }

func (p Presentation) names(kind string) (names []string) {
	for _, e := range p.entries {
		if e.kind == kind {
			names = append(names, e.name)
		}
	}
	return names
}

// Credentials are the headers and query parameters, or the variables, for one person.
type Credentials []rendered

type rendered struct {
	entry
	text string
}

// Render returns the credentials of one person. It leaves out an entry whose optional fields all
// have no value. It refuses a text that would end its entry, and does not repeat it.
func (p Presentation) Render(values credential.Values) (Credentials, error) {
	var c Credentials
	for _, e := range p.entries {
		if e.value.isLeftOut(p.fields, values) {
			continue
		}
		text := e.value.render(values)
		ends := credential.HasControl(text) || e.kind == header && !httpguts.ValidHeaderFieldValue(text)
		if e.kind == variable {
			ends = strings.ContainsRune(text, 0)
		}
		if ends {
			return nil, fmt.Errorf("%s would have a control character", e)
		}
		c = append(c, rendered{e, text})
	}
	return c, nil
}

// AddTo adds the credentials to a request. It replaces headers and parameters of the same names.
func (c Credentials) AddTo(request *http.Request) {
	for _, r := range c {
		if r.kind == header {
			request.Header[r.name] = []string{r.text}
			continue
		}
		request.URL = withParameter(*request.URL, r.name, r.text)
	}
}

// withParameter returns the address with a query parameter, which it may have had in another
// spelling.
func withParameter(address url.URL, name, value string) *url.URL {
	var kept []string
	if address.RawQuery != "" {
		kept = slices.DeleteFunc(strings.Split(address.RawQuery, "&"), func(other string) bool {
			spelled, _, _ := strings.Cut(other, "=")
			plain, err := url.QueryUnescape(spelled)
			return err == nil && plain == name
		})
	}
	address.RawQuery = strings.Join(append(kept, name+"="+Escape(value)), "&")
	return &address
}

// Environment returns the variables, each as NAME=value.
func (c Credentials) Environment() (variables []string) {
	for _, r := range c {
		variables = append(variables, r.name+"="+r.text)
	}
	return variables
}

// Finder finds the secrets of a person in a text, also their lines, because a log has them one by
// one.
func (p Presentation) Finder(values credential.Values) credential.Finder {
	secrets := p.fields.Secrets(values)
	for _, secret := range slices.Clone(secrets) {
		for line := range strings.Lines(secret) {
			if line = strings.TrimSpace(line); len(line) >= 8 { // a secret by itself
				secrets = append(secrets, line)
			}
		}
	}
	return credential.NewFinder(secrets...)
}
