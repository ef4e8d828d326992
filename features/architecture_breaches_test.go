package features_test

import (
	"path"
	"slices"
	"strings"
)

// clocks are the functions that the domain must not call, because it takes the time as an argument.
var clocks = []string{"time.Now", "time.Since", "time.Until", "time.After", "time.Tick"}

// breaches returns the violations of a file.
func (s source) breaches() (found []string) {
	laws := table
	if s.isTest() {
		laws = testTable
	}
	holds := slices.IndexFunc(laws, func(l law) bool { return fits(l.of, path.Dir(s.file)) })
	if holds < 0 {
		return []string{s.file + " has no place in the table"}
	}
	for _, imported := range s.imports {
		if fits(laws[holds].never, imported) || !isStandard(imported) && !fits(laws[holds].may, imported) {
			found = append(found, s.file+" imports "+imported)
		}
	}
	for _, used := range s.uses {
		if !s.isTest() && fits([]string{"domain/..."}, s.file) && slices.Contains(clocks, used) {
			found = append(found, s.file+" uses "+used)
		}
	}
	if s.clause == "main" && !fits(programs, path.Dir(s.file)) {
		found = append(found, s.file+" is a program")
	}
	return found
}

func fits(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		above, tree := strings.CutSuffix(pattern, "...")
		return pattern == name || tree && strings.HasPrefix(name+"/", above)
	})
}

// isStandard reports whether a package is in the standard library: the first element of its path
// has no dot.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".") &&
		!slices.Contains([]string{"domain", "application", "adapters", "bootstrap", "features", "bench"}, first)
}
