package trace

import "strings"

// doctorAgent is the name in the user agent of pasteport doctor.
const doctorAgent = "pasteport-doctor"

// libraries are names in the user agents of HTTP libraries and browsers. They do not tell clients
// apart, and one client may use two of them.
var libraries = map[string]bool{
	"":                 true,
	"node":             true,
	"undici":           true,
	"node-fetch":       true,
	"axios":            true,
	"got":              true,
	"Bun":              true,
	"Deno":             true,
	"Mozilla":          true,
	"python-httpx":     true,
	"python-requests":  true,
	"aiohttp":          true,
	"Python":           true,
	"Go-http-client":   true,
	"okhttp":           true,
	"Java":             true,
	"Java-http-client": true,
	"reqwest":          true,
	"Dart":             true,
}

// product returns the name in a user agent, without a version.
func product(agent string) string {
	name, _, _ := strings.Cut(agent, "/")
	name, _, _ = strings.Cut(name, " ")
	return name
}

// IsDoctor reports whether the step is of pasteport doctor. Another sender may use its user agent,
// too.
func (s Step) IsDoctor() bool { return product(s.Agent) == doctorAgent }

func isLibrary(agent string) bool { return libraries[product(agent)] }

// areRelated reports whether two different user agents may be of one client, which is so if neither
// names a client.
func areRelated(a, b string) bool {
	return isLibrary(a) && isLibrary(b)
}

// mayBeRelated is areRelated for a client that names itself in some of its requests only, as Claude
// Code does.
func mayBeRelated(a, b string) bool {
	return a == b || isLibrary(a) || isLibrary(b)
}
