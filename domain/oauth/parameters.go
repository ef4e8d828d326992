package oauth

import "slices"

// Parameters are the decoded parameters of one request, from its query or its form, never from
// both.
type Parameters map[string][]string

// Get returns the value of a parameter that may occur once; an empty value counts as absent.
func (p Parameters) Get(name string) string {
	if values := p.All(name); len(values) > 0 {
		return values[0]
	}
	return ""
}

// All returns the values of a parameter that may be repeated, without the empty ones.
func (p Parameters) All(name string) []string {
	if !slices.Contains(p[name], "") {
		return p[name]
	}
	return slices.DeleteFunc(slices.Clone(p[name]), func(value string) bool { return value == "" })
}

// CheckNotRepeated refuses with InvalidRequest when one of the named parameters occurs more than
// once (RFC 6749 §3.1).
func (p Parameters) CheckNotRepeated(names ...string) error {
	for _, name := range names {
		if len(p.All(name)) > 1 {
			return Refuse(InvalidRequest, "A5", "a parameter is repeated")
		}
	}
	return nil
}

// CheckNoneRepeated refuses like CheckNotRepeated for every parameter but resource, the only one
// that may be repeated (RFC 8707 §2).
func (p Parameters) CheckNoneRepeated() error {
	for name, values := range p {
		if name != "resource" && len(values) > 1 { // also an empty one: no client has a reason to send it
			return Refuse(InvalidRequest, "D5", "a parameter is repeated")
		}
	}
	return nil
}
