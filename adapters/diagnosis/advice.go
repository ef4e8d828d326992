package diagnosis

import (
	_ "embed" // the advice
	"strings"

	"github.com/pasteport/pasteport/domain/trace"
)

// texts are lines of a key, a tab and a text. The key of a remedy for a refusal is its rule. A kind
// of step, and a reason for the end of a grant, have a verdict and perhaps a hint. A key in braces
// stands for its text in the lines after it.
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

// hintFor returns the advice for the rule of a step, or for its outcome.
func hintFor(step trace.Step) string {
	for rule := range strings.SplitSeq(step.Rule, ", ") {
		if hint, found := advice[rule]; found && rule != "" {
			return hint
		}
	}
	switch {
	case step.Outcome == trace.Failed:
		return "The log has the cause under request " + step.Request + "."
	case step.Rule != "" && strings.Contains("ACDL", step.Rule[:1]):
		return advice["{maker}"]
	}
	return ""
}

// adviseProxy adds advice for the case that no metadata host has answered, whose cause is probably
// the network of this service.
func adviseProxy(connections []Connection) {
	for i := range connections {
		if c := &connections[i]; c.State == Stopped && c.furthest().Rule == "C41" {
			c.Hint += " " + advice["proxy"]
		}
	}
}

// hasReachedHost reports whether a metadata host answered in this step, or earlier if the document
// was cached.
func hasReachedHost(step trace.Step) bool {
	return step.Kind == trace.ClientMetadata && (step.Outcome == trace.Passed ||
		step.Outcome == trace.Refused && step.Rule != "C41" && step.Rule != "C53")
}
