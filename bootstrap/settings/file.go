package settings

import (
	"bytes"
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
	path      string
	values    map[string]*yaml.Node
	positions map[string]string
}

// open reads the file that a flag or the environment names, or the default file of the working
// folder if there is one.
func (t *Table) open() (document, error) {
	if err := t.file.read(document{}); err != nil {
		return document{}, err
	}
	path := t.path
	if path == "" {
		if _, err := os.Stat(defaultFile); errors.Is(err, fs.ErrNotExist) {
			return document{}, nil
		}
		path = defaultFile
	}
	text, err := ReadFile(path, fileLimit)
	if err != nil {
		return document{}, fmt.Errorf("reading the settings: %w: name a readable file with --%s", err, t.file.Name)
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
	d := document{path: path, values: map[string]*yaml.Node{}, positions: map[string]string{}}
	var root, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		return d, nil
	case err != nil && (strings.Contains(err.Error(), "anchor") || // whose text would repeat the name
		strings.Contains(err.Error(), "alphabetic or numeric")): // of a * without a name
		return document{},
			fmt.Errorf("%s has an alias, which begins with *: write the value itself, in quotes if it begins with *",
				path)
	case err != nil && strings.Contains(err.Error(), "mapping values are not allowed"):
		return document{}, fmt.Errorf(
			"%s is not YAML: %s: put a value that has a colon and a space in quotes, such as 'X-Api-Key: {token}'",
			path, strings.TrimPrefix(err.Error(), "yaml: "))
	case err != nil:
		return document{},
			fmt.Errorf("%s is not YAML: %s: write one \"name: value\" on each line, indented with spaces",
				path, strings.TrimPrefix(err.Error(), "yaml: "))
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
		mistakes = append(mistakes, t.take(d, pair[0], pair[1]))
	}
	return d, errors.Join(mistakes...)
}

// take adds one entry of the file.
func (t *Table) take(d document, key, value *yaml.Node) error {
	position := fmt.Sprintf("%s:%d", d.path, key.Line)
	name := key.Value
	switch {
	case key.Kind != yaml.ScalarNode || key.Tag == "!!merge":
		return fmt.Errorf("%s: this is not a setting: write \"name: value\"", position)
	case t.lookup(name) == nil:
		return fmt.Errorf("%s: unknown setting %q%s", position, name, t.suggestion(name))
	case d.positions[name] != "":
		return fmt.Errorf("%s: %s is already set in %s: keep one", position, name, d.positions[name])
	}
	d.values[name], d.positions[name] = value, position
	return nil
}

func (t *Table) suggestion(name string) string {
	if near := t.nearest(name); near != "" {
		return ": did you mean " + near + "?"
	}
	return ": \"pasteport config example --all\" lists all settings"
}
