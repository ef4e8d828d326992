package matrix

import (
	"fmt"
	"strings"
)

// Rule is one line of the catalogue. A reason says why no spec proves it.
type Rule struct {
	Number, Sentence, Reason string
	heading                  bool
}

func (r Rule) section() string { return r.Number[:1] }

// readRules reads lines of number, sentence and perhaps reason; a number without digits makes the line a heading.
func readRules(table string) (rules []Rule, err error) {
	seen := map[string]bool{}
	for line := range strings.Lines(table) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		heading := len(fields[0]) == 1
		if len(fields) < 2 || len(fields) > 3 || !heading && !isNumber(fields[0]) {
			return nil, fmt.Errorf("reading the rules: %q is no rule", line)
		}
		if seen[fields[0]] {
			return nil, fmt.Errorf("reading the rules: %s is there twice", fields[0])
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
