// Package secret adds a person's credential to the requests for a server: in headers, or in
// parameters of the query. Parse reads the entries of the setting present into a Presentation,
// which renders Credentials from the values of one person's fields. An Environment is the same for
// a program. Template is the language of the entries.
package secret

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/pasteport/pasteport/domain/credential"
)

// DefaultEntry is the entry of the zero Presentation.
const DefaultEntry = "Authorization: Bearer {token}"

// Presentation is the headers and query parameters that present a credential. The zero value
// presents a token as bearer token.
type Presentation struct {
	entries []entry
	fields  credential.Fields
}

// entry is one header or query parameter.
type entry struct {
	name    string // of a header in its canonical form
	inQuery bool
	value   Template
}

var bearer = entry{name: "Authorization", value: Template{[]part{{literal: "Bearer "}, {field: credential.Token}}}}

func (p Presentation) all() []entry {
	if len(p.entries) == 0 {
		return []entry{bearer}
	}
	return p.entries
}

// Parse reads entries such as "X-Api-Key: {token}" and "?key={token}" with the names of fields; no
// fields stand for the token. Without entries it presents the token as bearer token. It returns
// one error for each mistake, which begins with the number of the entry if there are several, and
// does not repeat its value.
func Parse(texts []string, fields credential.Fields) (Presentation, []error) {
	p := Presentation{fields: fields}
	var mistakes []error
	for i, text := range texts {
		next, err := parseEntry(text, fields.Names())
		if err == nil && slices.ContainsFunc(p.entries, next.isSame) {
			err = fmt.Errorf("an entry before it sets %s already: keep one", next)
		}
		if err != nil {
			mistakes = append(mistakes, numbered(i, len(texts), err))
		}
		p.entries = append(p.entries, next)
	}
	return p, mistakes
}

// numbered adds the number of the entry if there are several.
func numbered(index, count int, err error) error {
	if count == 1 {
		return err
	}
	return fmt.Errorf("number %d: %w", index+1, err)
}

// Take removes the first header that has a token and nothing else than the literal text of its
// entry, and returns the token; "" for none.
func (p Presentation) Take(header http.Header) string {
	const mark = "\x00" // which no header has
	for _, e := range p.entries {
		before, after, found := strings.Cut(e.value.Render(credential.Values{credential.Token: mark}), mark)
		text, begins := strings.CutPrefix(strings.Join(header[e.name], ","), before)
		text, ends := strings.CutSuffix(text, after)
		if found && begins && ends && text != "" && !e.inQuery {
			delete(header, e.name)
			return text
		}
	}
	return ""
}

// IsSet reports whether the operator has chosen how the credential is sent.
func (p Presentation) IsSet() bool { return len(p.entries) > 0 }

// Unused returns the names of the fields that no entry presents.
func (p Presentation) Unused() []string {
	return slices.DeleteFunc(p.fields.Names(), func(name string) bool {
		return slices.ContainsFunc(p.all(), func(e entry) bool { return e.value.Uses(name) })
	})
}

func (e entry) isSame(other entry) bool { return e.name == other.name && e.inQuery == other.inQuery }

// String names the entry for errors.
func (e entry) String() string {
	if e.inQuery {
		return "the query parameter " + e.name
	}
	return "the header " + e.name
}

// Sent describes how the credential is sent, without literal text of
// templates, which may be secret.
func (p Presentation) Sent() string {
	if len(p.entries) == 0 {
		return "as bearer token in the header Authorization"
	}
	var all []string
	for _, e := range p.entries {
		all = append(all, "in "+e.String())
	}
	return strings.Join(all, " and ")
}

func parseEntry(text string, fields []string) (entry, error) {
	parameter, inQuery := strings.CutPrefix(text, "?")
	if inQuery {
		return parseParameter(parameter, fields)
	}
	name, value, found := strings.Cut(text, ":")
	switch {
	case !found || !httpguts.ValidHeaderFieldName(name):
		return entry{}, errors.New(
			`it is not a header: write it like "X-Api-Key: {token}", or a query parameter like "?key={token}"`)
	case isReserved(textproto.CanonicalMIMEHeaderKey(name)):
		return entry{}, fmt.Errorf("the gateway itself sets or forwards the header %s: choose another", name)
	}
	value = strings.Trim(value, " ")
	template, err := parseTemplate(value, fields)
	switch {
	case err != nil:
		return entry{}, err
	case value == "" || strings.ContainsFunc(value, isControl):
		return entry{}, fmt.Errorf("the header %s has no value or a control character: write it in one line", name)
	}
	return entry{name: textproto.CanonicalMIMEHeaderKey(name), value: template}, nil
}

// parseParameter parses a query parameter. Its whole value is percent-encoded, so {urlquery(token)}
// is the same as {token}.
func parseParameter(text string, fields []string) (entry, error) {
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" || escape(name) != name {
		return entry{}, errors.New(
			`it is not a query parameter: write it like "?key={token}", with letters, digits, "-", "_", "." ` +
				`and "~" in its name`)
	}
	template, err := parseTemplate(value, fields)
	if err == nil && (value == "" || strings.ContainsFunc(value, isControl)) {
		err = fmt.Errorf("the query parameter %s has no value or a control character: write it in one line", name)
	}
	return entry{name: name, inQuery: true, value: template.unescaped()}, err
}

// reserved are headers that belong to the connection, the message or the client.
var reserved = []string{
	"Host", "Content-Length", "Content-Type", "Content-Encoding", "Content-Digest", "Forwarded", "Origin", "Signature",
	"Signature-Input", "X-Request-Id",
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Expect",
	"Accept", "Accept-Encoding", "Accept-Language", "Last-Event-Id", "User-Agent", "Traceparent", "Tracestate",
}

func isReserved(header string) bool {
	return slices.Contains(reserved, header) ||
		slices.ContainsFunc([]string{"Mcp-", "X-Pasteport-", "X-Forwarded-"}, func(prefix string) bool {
			return strings.HasPrefix(header, prefix)
		})
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// Headers returns the names of the headers.
func (p Presentation) Headers() []string { return p.names(false) }

// Parameters returns the names of the query parameters.
func (p Presentation) Parameters() []string { return p.names(true) }

func (p Presentation) names(inQuery bool) (names []string) {
	for _, e := range p.all() {
		if e.inQuery == inQuery {
			names = append(names, e.name)
		}
	}
	return names
}

// Credentials are the headers and query parameters for one person.
type Credentials []rendered

type rendered struct {
	entry
	text string
}

// Accepts reports whether the fields accept the values.
func (p Presentation) Accepts(values credential.Values) bool { return p.fields.Accept(values) }

// Sample returns values for a check of the server, with secrets that no person has.
func (p Presentation) Sample(secret func() string) credential.Values { return p.fields.Sample(secret) }

// Render returns the credentials of one person. It leaves out an entry whose optional fields all
// have no value. It refuses a text that would end its header, and does not repeat it.
func (p Presentation) Render(values credential.Values) (Credentials, error) {
	var c Credentials
	for _, e := range p.all() {
		if e.value.isLeftOut(p.fields, values) {
			continue
		}
		text := e.value.Render(values)
		if strings.ContainsFunc(text, isControl) || !e.inQuery && !httpguts.ValidHeaderFieldValue(text) {
			return nil, fmt.Errorf("%s would have a control character", e)
		}
		c = append(c, rendered{e, text})
	}
	return c, nil
}

// AddTo adds the credentials to a request. It replaces headers and parameters of the same names.
func (c Credentials) AddTo(request *http.Request) {
	request.URL = c.removeFrom(request.URL)
	for _, r := range c {
		if !r.inQuery {
			request.Header[r.name] = []string{r.text}
			continue
		}
		if request.URL.RawQuery != "" {
			request.URL.RawQuery += "&"
		}
		request.URL.RawQuery += r.name + "=" + escape(r.text)
	}
}

// removeFrom returns a copy of the address without the query parameters of the credentials.
func (c Credentials) removeFrom(address *url.URL) *url.URL {
	to := *address
	var kept []string
	for parameter := range strings.SplitSeq(address.RawQuery, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		plain, err := url.QueryUnescape(name)
		if err != nil || !slices.ContainsFunc(c, func(r rendered) bool {
			return r.inQuery && r.name == plain
		}) {
			kept = append(kept, parameter)
		}
	}
	to.RawQuery = strings.Join(kept, "&")
	return &to
}
