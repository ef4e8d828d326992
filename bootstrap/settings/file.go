package settings

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	defaultFile = "pasteport.yaml"
	fileLimit   = 1 << 20
)

// document is a file of settings: a flat mapping from names to values.
type document struct {
	path    string
	entries map[string]entry
}

type entry struct {
	place string // such as "pasteport.yaml:3"
	value *yaml.Node
}

// open reads the file that a flag or the environment names, or the default file of the working
// folder if there is one.
func (t *Table) open() (document, error) {
	if err := t.file.read(document{}, true); err != nil {
		return document{}, err
	}
	path := cmp.Or(t.config.Path, defaultFile)
	text, err := ReadFile(path, fileLimit)
	switch {
	case t.config.Path == "" && errors.Is(err, fs.ErrNotExist):
		return document{}, nil
	case err != nil:
		return document{}, fmt.Errorf("reading the settings: %w: name a readable file with --%s", err, t.file.name)
	}
	return t.parse(path, text)
}

// ReadFile reads a regular file of at most limit bytes. It refuses a pipe, which would block.
func ReadFile(path string, limit int64) ([]byte, error) {
	found, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case found.IsDir():
		return nil, fmt.Errorf("%s is a directory", path)
	case !found.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return text, err
}

// parse reports every syntax mistake. The values are checked when they are set.
func (t *Table) parse(path string, text []byte) (document, error) {
	d := document{path: path, entries: map[string]entry{}}
	var root, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
		return d, nil
	} else if err != nil {
		return document{}, explainSyntax(path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return document{}, fmt.Errorf("%s has more after a \"---\": keep one document", path)
	}
	top := root.Content[0]
	switch {
	case top.Kind == yaml.ScalarNode && top.Tag == "!!null":
		return d, nil
	case top.Kind != yaml.MappingNode:
		return document{},
			fmt.Errorf("%s:%d: this is not a setting: write one \"name: value\" on each line", path, top.Line)
	}
	var mistakes []error
	for pair := range slices.Chunk(top.Content, 2) {
		mistakes = append(mistakes, t.takeEntry(d, pair[0], pair[1]))
	}
	return d, errors.Join(mistakes...)
}

func explainSyntax(path, said string) error {
	switch {
	case strings.Contains(said, "anchor"), // whose text would repeat the name
		strings.Contains(said, "alphabetic or numeric"): // of a * without a name
		return fmt.Errorf("%s has an alias, which begins with *: write the value itself, in quotes if it begins with *",
			path)
	case strings.Contains(said, "mapping values are not allowed"):
		said += ": put a value that has a colon and a space in quotes, such as 'X-Api-Key: {token}'"
	default:
		said += ": write one \"name: value\" on each line, indented with spaces"
	}
	return fmt.Errorf("%s is not YAML: %s", path, said)
}

// takeEntry adds one entry of the file.
func (t *Table) takeEntry(d document, key, value *yaml.Node) error {
	name, place, known := key.Value, fmt.Sprintf("%s:%d", d.path, key.Line), t.Names()
	switch first, isTwice := d.entries[name]; {
	case key.Kind != yaml.ScalarNode || key.Tag == "!!merge":
		return fmt.Errorf("%s: this is not a setting: write \"name: value\"", place)
	case isTwice:
		return fmt.Errorf("%s: %s is already set in %s: keep one", place, name, first.place)
	case slices.Contains(known, name):
		d.entries[name] = entry{place, value}
		return nil
	}
	advice := "\"pasteport config example --all\" lists all settings"
	if near := nearest(name, known); near != "" {
		advice = "did you mean " + near + "?"
	}
	return fmt.Errorf("%s: unknown setting %q: %s", place, name, advice)
}
