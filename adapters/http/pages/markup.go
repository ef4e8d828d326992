package pages

import (
	"context"
	"io"

	"github.com/a-h/templ"
)

// markup is HTML that is constant or escaped.
type markup string

var _ templ.Component = markup("")

// Render implements templ.Component.
func (m markup) Render(_ context.Context, w io.Writer) error {
	_, err := io.WriteString(w, string(m))
	return err
}

// address returns a host or a URL, left to right in every language.
func address(text string) markup {
	return `<bdi class="host" dir="ltr">` + markup(templ.EscapeString(host(text))) + `</bdi>`
}

// name returns the name of the site.
func name(text string) markup {
	return `<bdi>` + markup(templ.EscapeString(text)) + `</bdi>`
}

// style returns the style element with the site's colours and the nonce of the page.
func (s sheet) style() markup {
	return `<style nonce="` + markup(templ.EscapeString(s.nonce)) + "\">\n" + markup(stylesheet+s.pages.colours) + `</style>`
}

// script returns an inline script with the nonce of the page. Only the policy of sendWithScript lets browsers run it.
func (s sheet) script(source string) markup {
	return `<script nonce="` + markup(templ.EscapeString(s.nonce)) + "\">\n" + markup(source) + `</script>`
}
