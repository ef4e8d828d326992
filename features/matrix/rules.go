package matrix

import (
	"fmt"
	"strings"
)

// Rule is one line of rules.tsv. Reason explains why no spec proves it.
type Rule struct {
	Number, Sentence, Reason string
	heading                  bool
}

func (r Rule) section() string { return r.Number[:1] }

// readRules reads lines of a number, a sentence and an optional reason, separated by tabs. A number
// without digits makes the line a heading.
func readRules(table string) (rules []Rule, err error) {
	seen := map[string]bool{}
	for line := range strings.Lines(table) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		heading := len(fields[0]) == 1
		if len(fields) < 2 || len(fields) > 3 || !heading && !isNumber(fields[0]) {
			return nil, fmt.Errorf("reading the rules: %q is not a rule: write a number, a tab, a sentence, and "+
				"perhaps a tab and a reason", line)
		}
		if seen[fields[0]] {
			return nil, fmt.Errorf("reading the rules: %s occurs twice", fields[0])
		}
		seen[fields[0]] = true
		rule := Rule{Number: fields[0], Sentence: fields[1], heading: heading}
		if len(fields) == 3 {
			rule.Reason = fields[2]
		}
		rules = append(rules, rule)
	}
	return rules, nil
}
