package browser

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Page is a response of the site, with the texts and the form of its HTML. Texts are "" where the
// page has none.
type Page struct {
	Status   int
	Location *url.URL // target of a redirect, else nil
	Body     string

	Title, Heading, Lead string
	Alert                string
	Code                 string   // the first code element, which is that of an error
	Action               *url.URL // of the form, absolute; nil if there is none, or it is malformed
	Fields               url.Values
}

func (p *Page) parse(base *url.URL) error {
	root, err := html.Parse(strings.NewReader(p.Body))
	if err != nil {
		return fmt.Errorf("reading a page of the site: %w", err)
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
			p.Action, _ = base.Parse(attribute(node, "action"))
		case node.DataAtom == atom.Input && attribute(node, "type") == "checkbox":
			if hasAttribute(node, "checked") {
				p.Fields.Add(attribute(node, "name"), attribute(node, "value"))
			}
		case node.DataAtom == atom.Input:
			p.Fields.Set(attribute(node, "name"), attribute(node, "value"))
		case attribute(node, "role") == "alert":
			p.Alert = text(node)
		case attribute(node, "class") == "lead":
			p.Lead = text(node)
		}
	}
	return nil
}

func hasAttribute(node *html.Node, name string) bool {
	return slices.ContainsFunc(node.Attr, func(a html.Attribute) bool { return a.Key == name })
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
