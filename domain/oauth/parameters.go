package oauth

// Parameters are the decoded parameters of one request, from its query or its form, never from both.
type Parameters map[string][]string

// Get returns the value of a parameter that may occur once; an empty value counts as absent (A4).
func (p Parameters) Get(name string) string {
	if len(p[name]) == 0 {
		return ""
	}
	return p[name][0]
}

// All returns the values of a parameter that may be repeated, without the empty ones.
func (p Parameters) All(name string) []string {
	var values []string
	for _, value := range p[name] {
		if value != "" {
			values = append(values, value)
		}
	}
	return values
}

// Once refuses with InvalidRequest when one of the named parameters occurs more than once (RFC 6749 §3.1, A5).
func (p Parameters) Once(names ...string) error {
	for _, name := range names {
		if len(p[name]) > 1 {
			return Refuse(InvalidRequest, "a parameter is repeated")
		}
	}
	return nil
}

// OnceEach refuses like Once for every parameter but resource, the only one that may be repeated (D5, RFC 8707 §2).
func (p Parameters) OnceEach() error {
	for name := range p {
		if name == "resource" {
			continue
		}
		if err := p.Once(name); err != nil {
			return err
		}
	}
	return nil
}
