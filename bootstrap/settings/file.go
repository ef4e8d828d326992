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

// entry is a line of the file, which is a flat mapping from names to values.
type entry struct {
	place string // such as "pasteport.yaml:3"
	value *yaml.Node
}

// open reads the file that a flag or the environment names, or the default file of the working
// folder if there is one.
func (t *Table) open() (map[string]entry, error) {
	if err := t.file.read(entry{}, true); err != nil {
		return nil, err
	}
	path := cmp.Or(t.config.Path, defaultFile)
	text, err := ReadFile(path, fileLimit)
	switch {
	case t.config.Path == "" && errors.Is(err, fs.ErrNotExist):
		return map[string]entry{}, nil
	case err != nil:
		return nil, fmt.Errorf("reading the settings: %w: name a readable file with --%s", err, t.file.name)
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

// parse reports every syntax mistake. The values are checked when they are set. The entries are nil
// if the text is not a mapping.
func (t *Table) parse(path string, text []byte) (map[string]entry, error) {
	var root, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
		return map[string]entry{}, nil
	} else if err != nil {
		said := strings.TrimPrefix(err.Error(), "yaml: ")
		if strings.Contains(said, "anchor") { // its name can be a secret that begins with *
			said = "it has an alias"
		}
		return nil, fmt.Errorf("%s is not YAML: %s: write one \"name: value\" on each line, indented with spaces; a "+
			"value needs quotes if it begins with * or has a colon and a space, such as 'X-Api-Key: {token}'", path, said)
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s has more after a \"---\": keep one document", path)
	}
	top, entries := root.Content[0], map[string]entry{}
	if top.Kind != yaml.MappingNode && top.ShortTag() != "!!null" {
		return nil, fmt.Errorf("%s:%d: this is not a setting: write one \"name: value\" on each line", path, top.Line)
	}
	var mistakes []error
	for pair := range slices.Chunk(top.Content, 2) {
		name, place := pair[0].Value, fmt.Sprintf("%s:%d", path, pair[0].Line)
		switch first, isTwice := entries[name]; {
		case pair[0].Kind != yaml.ScalarNode || pair[0].Tag == "!!merge":
			mistakes = append(mistakes, fmt.Errorf("%s: this is not a setting: write \"name: value\"", place))
		case isTwice:
			mistakes = append(mistakes, fmt.Errorf("%s: %s is already set in %s: keep one", place, name, first.place))
		case !slices.Contains(t.Names(), name):
			advice := "\"pasteport config example --all\" lists all settings"
			if near := nearest(name, t.Names()); near != "" {
				advice = "did you mean " + near + "?"
			}
			mistakes = append(mistakes, fmt.Errorf("%s: unknown setting %q: %s", place, name, advice))
		default:
			entries[name] = entry{place, pair[1]}
		}
	}
	return entries, errors.Join(mistakes...)
}
