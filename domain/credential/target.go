package credential

import (
	"errors"
	"regexp"
	"strings"
)

// Target is the URL of a server at the address in a field: {url}, or {url} and a path.
type Target struct {
	field Field
	path  string
}

// IsTarget reports whether a text names a field instead of an address.
func IsTarget(text string) bool { return strings.HasPrefix(text, "{") }

var targetPath = regexp.MustCompile(`^(?:/[A-Za-z0-9._~-]+)*/?$`)

// ParseTarget parses the text of a Target. The field must be required and have Hosts, so that
// people cannot choose any server.
func (f Fields) ParseTarget(text string) (Target, error) {
	name, path, closed := strings.Cut(strings.TrimPrefix(text, "{"), "}")
	field, found := f.Find(name)
	switch {
	case !IsTarget(text) || !closed || !targetPath.MatchString(path) || dotSegment.MatchString(path):
		return Target{}, errors.New("it is not an address with a field: write it like {url} or {url}/mcp")
	case !found:
		return Target{}, errors.New("the field in its braces is unknown: name one of fields")
	case len(field.Hosts) == 0 || field.Optional:
		return Target{},
			errors.New("the field " + field.Name +
				" is optional or has no hosts, so that people could choose any server: list its hosts")
	}
	return Target{field, path}, nil
}

// Field returns the field with the address.
func (t Target) Field() Field { return t.field }

// URL returns the URL for the values; false if the address is at a host that is not listed any
// more.
func (t Target) URL(values Values) (string, bool) {
	address, err := t.field.parse(values[t.field.Name])
	return address + t.path, err == nil
}

// Examples returns a URL for each listed host, to check the hosts.
func (t Target) Examples() (urls []string) {
	for _, host := range t.field.Hosts {
		if !strings.HasPrefix(host, plain) {
			host = secure + host
		}
		urls = append(urls, strings.Replace(host, "*.", "www.", 1)+t.path)
	}
	return urls
}
