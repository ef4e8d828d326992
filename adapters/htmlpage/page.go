// Package htmlpage reads the HTML pages of a login, for programs that act as the person's browser.
// Read returns a Page.
package htmlpage

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Page holds the texts and the form of a page; the texts are "" where the page has none.
type Page struct {
	Title, Heading, Lead string
	Alert                string
	Code                 string // the first code element, which is that of an error
	Action               string // of the form, as the page spells it
	Fields               url.Values
}

// Read parses a page.
func Read(body io.Reader) (Page, error) {
	p := Page{Fields: url.Values{}}
	root, err := html.Parse(body)
	if err != nil {
		return p, fmt.Errorf("reading the page: %w", err)
	}
	for node := range root.Descendants() {
		switch {
		case node.DataAtom == atom.Title:
			p.Title = text(node)
		case node.DataAtom == atom.H1:
			p.Heading = text(node)
		case node.DataAtom == atom.Code:
			p.Code = cmp.Or(p.Code, text(node))
		case node.DataAtom == atom.Form:
			p.Action = attribute(node, "action")
		case node.DataAtom == atom.Input:
			p.Fields.Set(attribute(node, "name"), attribute(node, "value"))
		case attribute(node, "role") == "alert":
			p.Alert = text(node)
		case attribute(node, "class") == "lead":
			p.Lead = text(node)
		}
	}
	return p, nil
}

func attribute(node *html.Node, name string) string {
	for _, attribute := range node.Attr {
		if attribute.Key == name {
			return attribute.Val
		}
	}
	return ""
}

// text returns the words inside a node.
func text(node *html.Node) string {
	var words []string
	for inner := range node.Descendants() {
		if inner.Type == html.TextNode {
			words = append(words, strings.Fields(inner.Data)...)
		}
	}
	return strings.Join(words, " ")
}
