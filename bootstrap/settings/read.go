package settings

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	prefix      = "PASTEPORT_" // of environment variables
	secretLimit = 64 << 10     // bytes
	fileLimit   = 1 << 20
	Hidden      = "[hidden]" // printed instead of a secret
	FromFile    = "file:"    // begins a value that names the file of a secret
)

// variable returns the name of a setting's environment variable.
func variable(name string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

func (s *setting) mistake(sentence string, values ...any) error {
	return oauth.NewMistake(s.name, sentence, values...)
}

// read sets the value from the flag, or else from the environment, or else from the file. It reads
// the file of a secret only if the command wants it, because others may have no permission.
func (s *setting) read(inFile entry, wanted bool) (err error) {
	value, node := os.Getenv(variable(s.name)), inFile.value
	switch {
	case s.flag.Changed:
		s.spelled, s.from = "--"+s.name, "flag --"+s.name
		node, err = s.typedNode(s.typed...)
	case value != "": // empty means unset, as in compose files
		s.spelled, s.from = variable(s.name), "environment "+variable(s.name)
		node, err = s.typedNode(value)
	case node != nil:
		s.spelled, s.from = s.name+" (from "+inFile.place+")", "file "+inFile.place
	default:
		return nil
	}
	if err != nil {
		return err
	}
	if path, isFile := strings.CutPrefix(node.Value, FromFile); s.isSecret() && isFile {
		if !wanted {
			return nil
		}
		secret, err := ReadSecret(path)
		if err != nil {
			return s.mistake("%w", err)
		}
		node = textNode(secret)
	}
	return s.take(node)
}

// ReadSecret returns the secret in a file, without the end of its line.
func ReadSecret(path string) (string, error) {
	text, err := ReadFile(path, secretLimit)
	secret := strings.TrimRight(string(text), "\r\n")
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot be read: %w", err)
	case secret == "":
		return "", errors.New("names an empty file: put the secret into it")
	}
	return secret, nil
}

// typedNode returns the value in the texts of a flag, or in that of a variable: the last text, or a
// list with the items of all texts. A text has items between commas and in lines, where an item
// with a comma needs quotes around it, or one or more mappings in JSON.
func (s *setting) typedNode(texts ...string) (*yaml.Node, error) {
	if !s.isList() {
		return textNode(texts[len(texts)-1]), nil
	}
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, text := range texts {
		if s.keys() != nil && (strings.HasPrefix(text, "{\"") || strings.HasPrefix(text, "[")) {
			var root yaml.Node
			if err := yaml.Unmarshal([]byte(text), &root); err != nil { // JSON is YAML
				return nil, s.mistake("is %s, which is not JSON: write %s", Hidden, s.allowed())
			}
			items := root.Content // the document, which is a single mapping or a list of them
			if items[0].Kind == yaml.SequenceNode {
				items = items[0].Content
			}
			list.Content = append(list.Content, items...)
			continue
		}
		lines := csv.NewReader(strings.NewReader(text))
		lines.FieldsPerRecord = -1                       // lines may differ in their number of items
		lines.LazyQuotes = !quotedItem.MatchString(text) // the quotes of a command are its own
		records, err := lines.ReadAll()
		if err != nil {
			return nil, s.mistake("is %s, which is not a list: write %s", Hidden, s.allowed())
		}
		for _, item := range slices.Concat(records...) {
			list.Content = append(list.Content, textNode(item))
		}
	}
	return list, nil
}

// quotedItem matches the beginning of an item in quotes.
var quotedItem = regexp.MustCompile(`(?m)(^|,)"`)

func textNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

// take sets the value. The only item of a list may stand without the list.
func (s *setting) take(node *yaml.Node) error {
	items, value := []*yaml.Node{node}, reflect.New(s.value.Type()).Elem()
	if s.isList() && node.Kind == yaml.SequenceNode {
		items = node.Content
	}
	for i, item := range items {
		one := reflect.New(s.item()).Elem()
		if err := s.takeItem(i+1, item, one); err != nil {
			return err
		}
		if !s.isList() {
			value.Set(one)
			continue
		}
		value.Set(reflect.Append(value, one))
	}
	s.value.Set(value)
	return nil
}

// takeItem reads the value, or an item of the list, into a variable.
func (s *setting) takeItem(number int, node *yaml.Node, to reflect.Value) error {
	text := node.Value
	if s.isList() {
		text = strings.TrimSpace(text)
	}
	switch {
	case node.Kind == yaml.AliasNode:
		return s.mistake("is an alias: write the value itself")
	case node.ShortTag() == "!!null":
		return s.mistake("has no value: write %s, or leave the line out", s.allowed())
	case node.Kind == yaml.MappingNode && s.keys() != nil: // mistakes repeat no value, which may be a secret
		for pair := range slices.Chunk(node.Content, 2) {
			if key := pair[0].Value; !slices.Contains(s.keys(), key) {
				return s.mistake(": number %d has the unknown key %q: write %s", number, key,
					strings.Join(s.keys(), ", "))
			}
		}
		if node.Decode(to.Addr().Interface()) != nil {
			return s.mistake(": number %d has a key twice or a value of another type: write %s", number, s.allowed())
		}
	case s.tag.Get("secret") != "" && strings.HasSuffix(text, Hidden):
		return s.mistake("has %s, which stands for a hidden secret: write the secret itself", Hidden)
	case node.Kind != yaml.ScalarNode, parse(text, to) != nil, !s.isAllowed(text, to):
		found := strconv.Quote(node.Value)
		switch {
		case s.isSecret(), s.tag.Get("secret") == "items":
			found = Hidden
		case node.Kind == yaml.MappingNode:
			found = "a mapping"
		case node.Kind == yaml.SequenceNode:
			found = "a list"
		}
		return s.mistake("is %s: write %s", found, s.allowed())
	}
	return nil
}

// entry is a line of the file, which is a flat mapping from names to values.
type entry struct {
	place string // such as "pasteport.yaml:3"
	value *yaml.Node
}

// open reads the file that the setting config names, or else pasteport.yaml if that exists.
func (t *Table) open() (map[string]entry, error) {
	if err := t.file.read(entry{}, true); err != nil { // the name of the file, which is in no file itself
		return nil, err
	}
	path := cmp.Or(t.config.Path, "pasteport.yaml")
	text, err := ReadFile(path, fileLimit)
	switch {
	case t.config.Path == "" && errors.Is(err, fs.ErrNotExist):
		return map[string]entry{}, nil
	case err != nil:
		return nil, fmt.Errorf("reading the settings: %w: name a readable file with --%s", err, t.file.name)
	}
	return t.parseFile(path, text)
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

// parseFile returns the entries of a file by their names, and reports every wrong name. The values
// are checked when they are set. The entries are nil if the text is not a mapping in YAML.
func (t *Table) parseFile(path string, text []byte) (map[string]entry, error) {
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
			"value needs quotes if it begins with * or has a colon and a space, such as 'X-Api-Key: {token}'",
			path, said)
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
