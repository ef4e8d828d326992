package pages

import "slices"

// Field is an input of a form with several fields. Label and Help are texts of the site.
type Field struct {
	Name     string
	Label    string // if empty, the page shows the label of a well-known name, or else Name
	Help     string
	Value    string // shown in the field; empty for a secret one
	Secret   bool
	Optional bool
	Problem  string // a sentence about the value that was entered
}

func (f Field) id() string { return "field_" + f.Name }

func (f Field) kind() string {
	if f.Secret {
		return "password"
	}
	return "text"
}

// autocomplete keeps the saved login of the site out of the form: password managers ignore "off".
func (f Field) autocomplete() string {
	if f.Secret {
		return "one-time-code"
	}
	return "off"
}

// describedBy returns the ids of the texts about the field; why is the text about the form.
func (f Field) describedBy() string {
	ids := "why"
	if f.Help != "" {
		ids = f.id() + "_help " + ids
	}
	if f.Problem != "" {
		ids = f.id() + "_problem " + ids
	}
	return ids
}

// hasFocus reports whether the page opens with the cursor in field i: after a problem, in the first
// field with its own problem, or else in the first field.
func hasFocus(fields []Field, i int, problem string) bool {
	first := slices.IndexFunc(fields, func(f Field) bool { return f.Problem != "" })
	return problem != "" && i == max(first, 0)
}
