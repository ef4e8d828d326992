package http

import (
	"slices"
	"time"

	"github.com/pasteport/pasteport/adapters/http/pages"
	"github.com/pasteport/pasteport/domain/oauth"
)

// The inputs with which a person narrows what a client requests.
const (
	choiceInput   = "choice" // a form without it comes from a page without checkboxes
	allowInput    = "allow"
	lifetimeInput = "lifetime"
)

// choiceIn returns what the person has chosen; nil from a page that offers no choice.
func choiceIn(form oauth.Parameters) (*oauth.Choice, error) {
	if form.Get(choiceInput) == "" {
		return nil, nil
	}
	choice := &oauth.Choice{Scopes: oauth.NewScopes(form.All(allowInput)...)}
	if chosen := form.Get(lifetimeInput); chosen != "" {
		lifetime, err := time.ParseDuration(chosen)
		if err != nil || lifetime == 0 {
			return nil, oauth.Refuse(oauth.InvalidRequest, "B25", "the form has a time that the page did not offer")
		}
		choice.Lifetime = lifetime
	}
	return choice, nil
}

// permissions returns scopes with their checkboxes. The first scope has none, so that the person
// cannot take it away.
func permissions(catalogue oauth.ScopeCatalogue, all, chosen oauth.Scopes) (described []pages.Permission) {
	scopes := catalogue.Describe(all)
	for i, scope := range scopes {
		permission := pages.Permission{Text: scope.Description, Allowed: chosen.Has(scope.Name)}
		if i > 0 {
			permission.Scope = scope.Name
		}
		implies := func(other oauth.Scope) bool {
			return other.Name != scope.Name && catalogue.Expand(oauth.NewScopes(other.Name)).Has(scope.Name)
		}
		if by := slices.IndexFunc(scopes, implies); by >= 0 && permission.Scope != "" {
			permission.ImpliedBy = scopes[by].Description
		}
		described = append(described, permission)
	}
	return described
}

// lifetimes returns the times that the page offers.
func lifetimes(choices []time.Duration, choice *oauth.Choice) (offered []pages.Lifetime) {
	if len(choices) < 2 {
		return nil
	}
	for _, lifetime := range choices {
		offered = append(offered, pages.Lifetime{
			Value:  lifetime.String(),
			Lasts:  lifetime,
			Chosen: choice != nil && choice.Lifetime == lifetime,
		})
	}
	return offered
}
