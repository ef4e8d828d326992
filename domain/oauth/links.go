package oauth

import (
	"net/url"
	"slices"
	"strings"
)

// Link is a web page for developers or people. The metadata documents and the pages have it.
type Link struct {
	Name string // one of those below
	URL  string
}

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

func (l Links) check() (mistakes []error) {
	const field = Field("Links")
	for i, link := range l {
		u, err := url.Parse(link.URL)
		switch {
		case !slices.Contains(linkNames, link.Name):
			mistakes = append(mistakes, NewMistake("%s has the unknown name %q: choose one of %s", field, link.Name,
				strings.Join(linkNames, ", ")))
		case l[:i].URL(link.Name) != "":
			mistakes = append(mistakes, NewMistake("%s has %s twice: keep one", field, link.Name))
		case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
			mistakes = append(mistakes, NewMistake("%s has %q for %s: give the address of a web page", field,
				withoutUser(link.URL), link.Name))
		}
	}
	return mistakes
}
