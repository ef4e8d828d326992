package pages

import (
	"github.com/a-h/templ"

	"github.com/pasteport/pasteport/domain/oauth"
)

// link is a link of the operator, with its text in the language of the page.
type link struct {
	text   string
	target templ.SafeURL
}

// links returns the links of oauth.Links, and each target once.
func (s sheet) links() (all []link) {
	of, seen := s.pages.links, map[string]bool{"": true}
	add := func(text, target string) {
		if !seen[target] {
			seen[target] = true
			all = append(all, link{text, templ.URL(target)})
		}
	}
	add(s.say("Documentation"), of.URL(oauth.ServiceDocumentation))
	add(s.say("Privacy policy"), of.URL(oauth.OperatorPolicy))
	add(s.say("Terms of service"), of.URL(oauth.OperatorTerms))
	add(s.say("About the server"), of.URL(oauth.ResourceDocumentation))
	add(s.say("Privacy policy of the server"), of.URL(oauth.ResourcePolicy))
	add(s.say("Terms of the server"), of.URL(oauth.ResourceTerms))
	return all
}
