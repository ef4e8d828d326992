package doctor

import (
	"bytes"
	"net/url"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// page is the title, the first code element (of an error), and the form of an HTML page.
type page struct {
	title, code, action string
	fields              url.Values
}

func readPage(a answer) page {
	p := page{fields: url.Values{}}
	root, err := html.Parse(bytes.NewReader(a.body))
	if err != nil {
		return p
	}
	for node := range root.Descendants() {
		switch {
		case node.DataAtom == atom.Title && node.FirstChild != nil:
			p.title = node.FirstChild.Data
		case node.DataAtom == atom.Code && node.FirstChild != nil && p.code == "":
			p.code = node.FirstChild.Data
		case node.DataAtom == atom.Form:
			p.action = absolute(a.url, attribute(node, "action"))
		case node.DataAtom == atom.Input:
			p.fields.Set(attribute(node, "name"), attribute(node, "value"))
		}
	}
	return p
}

func absolute(base, reference string) string {
	from, err := url.Parse(base)
	if err != nil {
		return ""
	}
	to, err := from.Parse(reference)
	if err != nil {
		return ""
	}
	return to.String()
}

func attribute(node *html.Node, name string) string {
	for _, attribute := range node.Attr {
		if attribute.Key == name {
			return attribute.Val
		}
	}
	return ""
}
