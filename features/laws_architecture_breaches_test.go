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
	folder := path.Dir(s.file)
	applied := laws
	if s.isTest() {
		applied = testLaws
	}
	holds := slices.IndexFunc(applied, func(l law) bool { return fits(l.of, folder) })
	if holds < 0 {
		return []string{s.file + " has no law"}
	}
	for _, imported := range s.imports {
		if !applied[holds].allows(folder, imported) || imported == "bootstrap/pasteporttest" && !s.isTest() {
			found = append(found, s.file+" imports "+imported)
		}
	}
	for _, used := range s.uses {
		if !s.isTest() && fits([]string{"domain/..."}, s.file) && slices.Contains(clocks, used) {
			found = append(found, s.file+" uses "+used)
		}
	}
	if s.clause == "main" && !fits(programs, folder) {
		found = append(found, s.file+" is a program")
	}
	return found
}

// allows reports whether a package in the folder may import another. Adapters may import their own
// folder, the first below adapters/.
func (l law) allows(folder, imported string) bool {
	switch {
	case fits(l.never, imported):
		return false
	case !isOurs(imported):
		return isStandard(imported) || !slices.Contains(l.never, library)
	}
	parts := strings.Split(folder, "/")
	if parts[0] != "adapters" {
		return fits(l.may, imported)
	}
	own := strings.Join(parts[:2], "/")
	return fits(l.may, imported) || fits([]string{own + "/..."}, imported)
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
	return !strings.Contains(first, ".")
}

// isOurs reports whether a package is in this module; its path has lost the name of the module.
func isOurs(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return slices.Contains([]string{"domain", "application", "adapters", "bootstrap", "features", "bench"}, first)
}
