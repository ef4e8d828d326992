package secret

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/domain/credential"
)

// Environment is the environment variables that present a credential to a program.
type Environment struct {
	variables []variable
	fields    credential.Fields
}

type variable struct {
	name  string
	value Template
}

// ParseEnvironment reads templates such as "{token}" by the names of their variables, with the
// names of fields; no fields stand for the token. It returns one error for each mistake, which does
// not repeat the template.
func ParseEnvironment(templates map[string]string, fields credential.Fields) (Environment, []error) {
	e := Environment{fields: fields}
	var mistakes []error
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		next, err := parseVariable(name, templates[name], fields.Names())
		if err != nil {
			mistakes = append(mistakes, err)
		}
		e.variables = append(e.variables, next)
	}
	return e, mistakes
}

func parseVariable(name, value string, fields []string) (variable, error) {
	switch {
	case !IsVariable(name):
		return variable{},
			errors.New("the environment has a name that no variable can have: write letters, digits and underscores")
	case strings.ContainsRune(value, 0):
		return variable{}, fmt.Errorf("the variable %s contains NUL, which no environment can: remove it", name)
	}
	template, err := parseTemplate(value, fields)
	if err != nil {
		return variable{}, fmt.Errorf("the variable %s: %w", name, err)
	}
	return variable{name, template}, nil
}

// IsVariable reports whether the text is the name of a POSIX environment variable.
func IsVariable(text string) bool {
	for i, r := range text {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return text != ""
}

// Sets reports whether the environment has a variable of that name.
func (e Environment) Sets(name string) bool {
	return slices.ContainsFunc(e.variables, func(v variable) bool { return v.name == name })
}

// Unused returns the names of the fields that no variable has.
func (e Environment) Unused() []string {
	return slices.DeleteFunc(e.fields.Names(), func(name string) bool {
		return slices.ContainsFunc(e.variables, func(v variable) bool { return v.value.Uses(name) })
	})
}

// Accepts reports whether the fields accept the values.
func (e Environment) Accepts(values credential.Values) bool { return e.fields.Accept(values) }

// Render returns the variables, each as NAME=value, and a function that reports whether a text
// contains a secret, as credential.Finder does. It leaves out a variable whose optional fields all
// have no value, and refuses a NUL, which would end its variable.
func (e Environment) Render(values credential.Values) (variables []string, repeats func(text string) bool, err error) {
	var secrets []string
	for _, secret := range e.fields.Secrets(values) {
		secrets = append(secrets, lines(secret)...)
	}
	for _, v := range e.variables {
		if v.value.isLeftOut(e.fields, values) {
			continue
		}
		text := v.value.Render(values)
		if strings.ContainsRune(text, 0) {
			return nil, nil, fmt.Errorf("the variable %s would have a NUL", v.name)
		}
		variables = append(variables, v.name+"="+text)
	}
	return variables, credential.NewFinder(secrets...).Finds, nil
}

// shortestLine is the shortest line of a secret that is a secret by itself.
const shortestLine = 8

// lines returns a secret and its lines, because a log has them one by one.
func lines(secret string) (secrets []string) {
	secrets = append(secrets, secret)
	for line := range strings.Lines(secret) {
		if line = strings.TrimSpace(line); len(line) >= shortestLine {
			secrets = append(secrets, line)
		}
	}
	return secrets
}
