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
	place  string // in the file, as in "pasteport.yaml:3"
}

// spelled returns the setting's name in the spelling of its origin.
func (s *Setting) spelled() string {
	switch o := s.origin; o.source {
	case byFlag:
		return "--" + s.Name
	case byEnvironment:
		return variable(s.Name)
	case byFile:
		return s.Name + " (from " + o.place + ")"
	default:
		return s.Name
	}
}

// from describes the origin in the output of "pasteport config".
func (s *Setting) from() string {
	switch o := s.origin; o.source {
	case byFlag:
		return "flag --" + s.Name
	case byEnvironment:
		return "environment " + variable(s.Name)
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
