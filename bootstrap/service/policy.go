package service

import (
	"errors"
	"slices"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/access"
	"github.com/pasteport/pasteport/domain/oauth"
)

// PolicyConfig has the rules for who may use the tools, prompts and resources of the upstreams, as
// package access reads them.
type PolicyConfig struct {
	Tools     []string `set:"tools" unset:"all" example:"[deny delete_*, allow *]" allowed:"rules such as \"allow read_*\" or \"deny delete_* for role:guest\"" doc:"which tools people see and may call. Each rule is \"allow pattern…\" or \"deny pattern…\". It applies to all people unless it continues with \"for role:name scope:name…\". The first rule that matches decides; what no rule matches is denied"`
	Prompts   []string `set:"prompts" unset:"all" example:"[allow * for role:editor]" allowed:"rules such as \"allow read_*\" or \"deny delete_* for role:guest\"" doc:"which prompts people see and may get, as rules like those in tools"`
	Resources []string `set:"resources" unset:"all" example:"[allow file:///public/*]" allowed:"rules such as \"allow read_*\" or \"deny delete_* for role:guest\"" doc:"which resources people see and may read, as rules like those in tools, but with patterns for URIs and URI templates"`
}

// options returns the options for the rules, and every mistake with the number of its rule.
func (p PolicyConfig) options(scopes []oauth.Scope, roles bool) (options []bootstrap.MCPOption, _ error) {
	var mistakes []error
	for _, list := range []struct {
		name  string
		lines []string
		fold  func(name string) (folded string, ok bool)
		use   func(allows func(oauth.Caller, string) bool) bootstrap.MCPOption
	}{
		{"tools", p.Tools, access.FoldName, bootstrap.WithToolPolicy},
		{"prompts", p.Prompts, access.FoldName, bootstrap.WithPromptPolicy},
		{"resources", p.Resources, access.FoldURI, bootstrap.WithResourcePolicy},
	} {
		rules, wrong := access.Parse(list.lines, access.Vocabulary{
			Fold:   list.fold,
			Roles:  roles,
			Scopes: func(name string) []string { return containing(scopes, name) },
		})
		for _, mistake := range wrong {
			mistakes = append(mistakes, oauth.NewMistake(list.name, ": %w", mistake))
		}
		if !rules.Empty() {
			options = append(options, list.use(rules.Permit))
		}
	}
	return options, errors.Join(mistakes...)
}

// containing returns the scopes that contain a scope: itself and those that imply it, also
// indirectly. It returns none for an unknown scope.
func containing(scopes []oauth.Scope, name string) (found []string) {
	for _, scope := range scopes {
		if scope.Name == name {
			found = []string{name}
		}
	}
	for i := 0; i < len(found); i++ {
		for _, scope := range scopes {
			if slices.Contains(scope.Implies, found[i]) && !slices.Contains(found, scope.Name) {
				found = append(found, scope.Name)
			}
		}
	}
	return found
}
