package diagnosis

import (
	"cmp"
	_ "embed" // the advice
	"strings"

	"github.com/pasteport/pasteport/domain/attempt"
)

// texts has one advice per line: a key, a tab and a text. The key of a remedy is the rule of the
// refusal. KIND.name is the name of a step, KIND.verdict and KIND.hint are for an attempt whose
// last step is of the kind, and REASON.verdict and REASON.hint for the reason for which a grant
// ended. A key in braces stands for its text in the lines after it.
//
//go:embed advice.txt
var texts string

// advice has the texts by their keys.
var advice = func() map[string]string {
	found, terms := map[string]string{}, []string{}
	for line := range strings.Lines(texts) {
		key, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		found[key] = strings.NewReplacer(terms...).Replace(text)
		if strings.HasPrefix(key, "{") {
			terms = append(terms, key, found[key])
		}
	}
	return found
}()

// NameOf returns the name of a step for people.
func NameOf(kind attempt.Kind) string {
	return cmp.Or(advice[string(kind)+".name"], strings.ReplaceAll(string(kind), "_", " "))
}

// clientRules are the letters of the rules for what a client sends or publishes.
const clientRules = "ACDL"

// hintFor returns the advice for the rule of a step, or for its outcome.
func hintFor(step attempt.Step) string {
	for rule := range strings.SplitSeq(step.Rule, ", ") {
		if hint, found := advice[rule]; found && rule != "" {
			return hint
		}
	}
	switch {
	case step.Outcome == attempt.Failed:
		return "The log has the cause under request " + step.Request + "."
	case step.Rule != "" && strings.Contains(clientRules, step.Rule[:1]):
		return advice["{maker}"]
	}
	return ""
}
