package oauth

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/domain/uri"
)

// Link is a web page for developers or people. The metadata documents and the pages have it.
type Link struct {
	Name string // one of those below
	URL  string
}

// UnmarshalText reads "name = URL".
func (l *Link) UnmarshalText(text []byte) error {
	name, address, found := strings.Cut(string(text), " = ")
	if !found {
		return errors.New("the link has no URL")
	}
	*l = Link{Name: strings.TrimSpace(name), URL: strings.TrimSpace(address)}
	return nil
}

// MarshalText is the reverse of UnmarshalText.
func (l Link) MarshalText() ([]byte, error) { return []byte(l.Name + " = " + l.URL), nil }

// The names of links are those in the metadata of the authorization server (RFC 8414) and of the
// MCP servers (RFC 9728).
const (
	ServiceDocumentation  = "service_documentation" // for developers of clients
	OperatorPolicy        = "op_policy_uri"
	OperatorTerms         = "op_tos_uri"
	ResourceDocumentation = "resource_documentation"
	ResourcePolicy        = "resource_policy_uri"
	ResourceTerms         = "resource_tos_uri"
)

var linkNames = []string{ServiceDocumentation, OperatorPolicy, OperatorTerms, ResourceDocumentation, ResourcePolicy,
	ResourceTerms}

// Links are the links of a site, each name once.
type Links []Link

// URL returns the URL of a link, "" for none.
func (l Links) URL(name string) string {
	if at := slices.IndexFunc(l, func(one Link) bool { return one.Name == name }); at >= 0 {
		return l[at].URL
	}
	return ""
}

func (l Links) check() (found mistakes) {
	const field = "Links"
	for i, link := range l {
		u, err := url.Parse(link.URL)
		switch {
		case !slices.Contains(linkNames, link.Name):
			found.add(field, "has the unknown name %q: choose one of %s", link.Name, strings.Join(linkNames, ", "))
		case l[:i].URL(link.Name) != "":
			found.add(field, "has %s twice: keep one", link.Name)
		case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
			found.add(field, "has %q for %s: give the address of a web page", uri.WithoutUser(link.URL), link.Name)
		}
	}
	return found
}
