package service

import (
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/credential"
)

// fieldMapping is a credential.Field in the file of settings.
type fieldMapping struct {
	Name     string `json:"name" jsonschema:"name of the field in templates: lower-case letters, digits and underscores"`
	Label    string `json:"label,omitempty" jsonschema:"label on the pages; token, user and password have one"`
	Help     string `json:"help,omitempty" jsonschema:"text below the label"`
	Secret   *bool  `json:"secret,omitempty" jsonschema:"hide the value, and remove it from responses; the default is true for token and password"`
	Pattern  string `json:"pattern,omitempty" jsonschema:"regular expression (RE2) that the whole value matches"`
	Default  string `json:"default,omitempty" jsonschema:"value that the field has at first"`
	Required *bool  `json:"required,omitempty" jsonschema:"whether the field needs a value; the default is true"`
}

// fieldItem reads a field of the credential.
func fieldItem() settings.Item[credential.Field] {
	mapping := settings.Mapping[fieldMapping]("mappings such as {name: user}")
	return settings.Item[credential.Field]{
		Expected: mapping.Expected,
		Mapping:  mapping.Mapping,
		Parse: func(text string) (credential.Field, error) {
			m, err := mapping.Parse(text)
			return m.field(), err
		},
		Format: func(f credential.Field) string { return mapping.Format(mappingOf(f)) },
	}
}

func isSecretByName(name string) bool { return name == credential.Token || name == "password" }

func (m fieldMapping) field() credential.Field {
	f := credential.Field{
		Name:    m.Name,
		Label:   m.Label,
		Help:    m.Help,
		Pattern: m.Pattern,
		Default: m.Default,
		Secret:  isSecretByName(m.Name),
	}
	if m.Secret != nil {
		f.Secret = *m.Secret
	}
	f.Optional = m.Required != nil && !*m.Required
	return f
}

// mappingOf leaves out what is the default.
func mappingOf(f credential.Field) fieldMapping {
	m := fieldMapping{
		Name:    f.Name,
		Label:   f.Label,
		Help:    f.Help,
		Pattern: f.Pattern,
		Default: f.Default,
	}
	if f.Secret != isSecretByName(f.Name) {
		m.Secret = &f.Secret
	}
	if f.Optional {
		m.Required = new(bool)
	}
	return m
}
