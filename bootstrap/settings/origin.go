package settings

import (
	"strings"
)

// source is the kind of an origin. A greater one has precedence.
type source int

const (
	byDefault source = iota
	byFile
	byEnvironment
	byFlag
)

const prefix = "PASTEPORT_"

// origin is the place where a value was set.
type origin struct {
	source source
	name   string // the setting's, or that of the file which holds the secret
	place  string // in the file, as in "pasteport.yaml:3"
}

// spelled returns the setting's name in the spelling of its origin.
func (s *Setting) spelled() string {
	switch o := s.origin; o.source {
	case byFlag:
		return "--" + o.name
	case byEnvironment:
		return variable(o.name)
	case byFile:
		return o.name + " (from " + o.place + ")"
	default:
		return s.Name
	}
}

// from describes the origin in the output of "pasteport config".
func (s *Setting) from() string {
	switch o := s.origin; o.source {
	case byFlag:
		return "flag --" + o.name
	case byEnvironment:
		return "environment " + variable(o.name)
	case byFile:
		return "file " + o.place
	}
	if s.defaultText != "" && s.text() == "" {
		return "default: " + s.defaultText
	}
	return "default"
}

// variable returns the name of a setting's environment variable.
func variable(name string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}
