package service

import (
	"errors"
	"slices"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/access"
	"github.com/pasteport/pasteport/domain/oauth"
)

// PolicyConfig has the rules for who may use the tools, prompts and resources of the upstreams, as
// package access reads them.
type PolicyConfig struct{ Tools, Prompts, Resources []string }

func (p *PolicyConfig) settings() []*settings.Setting {
	return []*settings.Setting{
		settings.List("tools", &p.Tools, ruleItem, "which tools people see and may call. Each rule is "+
			"\"allow pattern…\" or \"deny pattern…\". It applies to all people unless it continues with "+
			"\"for role:name scope:name…\". The first rule that matches "+
			"decides; what no rule matches is denied").DefaultText("all").
			Example("deny delete_*", "allow *"),
		settings.List("prompts", &p.Prompts, ruleItem,
			"which prompts people see and may get, as rules like those in tools").DefaultText("all").
			Example("allow * for role:editor"),
		settings.List("resources", &p.Resources, ruleItem, "which resources people see and may read, as rules like "+
			"those in tools, but with patterns for URIs and URI templates").DefaultText("all").
			Example("allow file:///public/*"),
	}
}

const toolRules, promptRules, resourceRules = oauth.Field("Gateway.Policy.Tools"),
	oauth.Field("Gateway.Policy.Prompts"),
	oauth.Field("Gateway.Policy.Resources")

// ruleItem only keeps the text, because the errors of package access have the number of the rule
// and the remedy.
var ruleItem = settings.Verbatim(`rules such as "allow read_*" or "deny delete_* for role:guest"`)

// ruleList is one of the settings of a PolicyConfig.
type ruleList struct {
	field oauth.Field
	lines []string
	fold  func(name string) (folded string, ok bool)
	use   func(allows func(oauth.Caller, string) bool) bootstrap.MCPOption
}

func (p PolicyConfig) lists() []ruleList {
	return []ruleList{
		{toolRules, p.Tools, access.FoldName, bootstrap.WithToolPolicy},
		{promptRules, p.Prompts, access.FoldName, bootstrap.WithPromptPolicy},
		{resourceRules, p.Resources, access.FoldURI, bootstrap.WithResourcePolicy},
	}
}

func (l ruleList) parse(scopes []oauth.Scope, roles bool) (access.Rules, error) {
	rules, wrong := access.Parse(l.lines, access.Vocabulary{
		Fold:   l.fold,
		Roles:  roles,
		Scopes: func(name string) []string { return containing(scopes, name) },
	})
	var mistakes []error
	for _, mistake := range wrong {
		mistakes = append(mistakes, oauth.NewMistake("%s: %s", l.field, mistake))
	}
	return rules, errors.Join(mistakes...)
}

// options returns the options for the rules, and every mistake with the number of its rule.
func (p PolicyConfig) options(scopes []oauth.Scope, roles bool) (options []bootstrap.MCPOption, _ error) {
	var mistakes []error
	for _, list := range p.lists() {
		rules, err := list.parse(scopes, roles)
		mistakes = append(mistakes, err)
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
