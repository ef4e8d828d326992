package oauth

import "net/url"

// Links are web pages for developers and people, "" for none. The metadata documents and the pages
// have them.
type Links struct {
	ServiceDocumentation string // for developers of clients (RFC 8414)
	OperatorPolicy       string // how clients may use the data (RFC 8414)
	OperatorTerms        string // terms of service (RFC 8414)

	ResourceDocumentation string // the same of the MCP servers (RFC 9728)
	ResourcePolicy        string
	ResourceTerms         string
}

func (l Links) check() (mistakes []error) {
	for _, link := range []struct {
		field Field
		raw   string
	}{
		{"ServiceDocumentation", l.ServiceDocumentation},
		{"OperatorPolicy", l.OperatorPolicy},
		{"OperatorTerms", l.OperatorTerms},
		{"ResourceDocumentation", l.ResourceDocumentation},
		{"ResourcePolicy", l.ResourcePolicy},
		{"ResourceTerms", l.ResourceTerms},
	} {
		u, err := url.Parse(link.raw)
		if link.raw != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
			mistakes = append(mistakes,
				NewMistake("%s is %q: give the address of a web page", link.field, withoutUser(link.raw)))
		}
	}
	return mistakes
}
