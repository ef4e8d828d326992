package settings

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/agnivade/levenshtein"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Table holds all settings of the program.
type Table struct {
	settings []*setting
	groups   []string // titles, in the order of help
	wanted   []string // names of the settings that the command uses
	file     *setting // path of the file; it cannot be set in the file itself
	Unread   bool     // a file should have been read but could not be, so that its settings are unknown
	config   struct {
		Path string `set:"config" path:"file" doc:"file with settings (default: pasteport.yaml in the working directory, if it exists)"`
	}
}

// NewTable returns a table of the tagged fields of a struct, and sets those that are zero to their
// default.
func NewTable(config any, groups ...string) *Table {
	t := &Table{groups: groups, settings: settingsOf("", "", reflect.ValueOf(config).Elem())}
	t.wanted = t.Names()
	t.file = settingsOf("", "Configuration", reflect.ValueOf(&t.config).Elem())[0] // the only one
	slices.SortStableFunc(t.settings, func(a, b *setting) int {
		return cmp.Compare(slices.Index(groups, a.group), slices.Index(groups, b.group))
	})
	return t
}

// Given reports whether the setting was set by a flag, the environment or the file. It is false
// before Read.
func (t *Table) Given(name string) bool { return t.find(name).from != "" }

// Refuse reports those of the settings that are set to anything but their default, with the reason
// why they have no effect.
func (t *Table) Refuse(reason string, names ...string) error {
	var mistakes []error
	for _, name := range names {
		s := t.find(name)
		if s.from != "" && (s.isList() && s.value.Len() > 0 || s.String() != s.flag.DefValue) {
			mistakes = append(mistakes, s.mistake("is set, but %s", reason))
		}
	}
	return errors.Join(mistakes...)
}

// Names returns the names of all settings but the excluded ones.
func (t *Table) Names(excluded ...string) (names []string) {
	for _, s := range t.settings {
		if !slices.Contains(excluded, s.name) {
			names = append(names, s.name)
		}
	}
	return names
}

// InGroup returns the names of the settings of a group.
func (t *Table) InGroup(title string) (names []string) {
	for _, s := range t.settings {
		if s.group == title {
			names = append(names, s.name)
		}
	}
	return names
}

// find returns the setting with the name, or with the field that a mistake names; nil for none.
func (t *Table) find(name string) *setting {
	for _, s := range t.settings {
		if s.name == name || s.field == name || strings.HasSuffix(s.field, "."+name) {
			return s
		}
	}
	return nil
}

// Read sets the values and reports all mistakes together.
func (t *Table) Read() error {
	entries, err := t.open()
	t.Unread = entries == nil
	mistakes := []error{err, t.strayVariables()}
	for _, s := range t.settings {
		mistakes = append(mistakes, s.read(entries[s.name], slices.Contains(t.wanted, s.name)))
	}
	return errors.Join(mistakes...)
}

// strayVariables reports mistyped variables. It ignores others with our prefix, because Kubernetes
// derives some from a service's name.
func (t *Table) strayVariables() error {
	var mistakes []error
	for _, line := range os.Environ() {
		typed, _, _ := strings.Cut(line, "=")
		rest, ours := strings.CutPrefix(typed, prefix)
		name := strings.ToLower(strings.ReplaceAll(rest, "_", "-"))
		if near := nearest(name, t.Names()); ours && near != "" && near != name && name != t.file.name {
			mistakes = append(mistakes, fmt.Errorf("unknown setting %s: did you mean %s?", typed, variable(near)))
		}
	}
	return errors.Join(mistakes...)
}

// nearest returns the known name that is most similar to the given one, or "" if none is similar.
func nearest(name string, known []string) (found string) {
	least := min(len(name)/3, 3) + 1 // at most a third of the letters may differ, and at most three
	for _, candidate := range known {
		if distance := levenshtein.ComputeDistance(strings.ToLower(name), candidate); distance < least {
			found, least = candidate, distance
		}
	}
	return found
}

// Explain lists the mistakes of the configuration, one per line, each with the setting in the
// spelling that was used.
func (t *Table) Explain(err error) error {
	switch lines := t.explain(err); len(lines) {
	case 0:
		return nil
	case 1:
		return errors.New(lines[0])
	default:
		return fmt.Errorf("%d settings are wrong:\n  %s", len(lines), strings.Join(lines, "\n  "))
	}
}

func (t *Table) explain(err error) (lines []string) {
	switch e := err.(type) { //nolint:errorlint // the tree is walked by hand, because each branch is a line
	case nil:
		return nil
	case *oauth.Mistake:
		name := e.Field
		if s := t.find(name); s != nil {
			name = s.spelled
		}
		return []string{e.Of(name) + remedy(e)}
	case interface{ Unwrap() []error }:
		for _, branch := range e.Unwrap() {
			lines = append(lines, t.explain(branch)...)
		}
		return lines
	case interface{ Unwrap() error }:
		if mistake := new(oauth.Mistake); errors.As(err, &mistake) { // says it all without the text around it
			return t.explain(e.Unwrap())
		}
	}
	return []string{err.Error() + remedy(err)}
}

// remedy returns what to add to the error of a file that this process cannot use; "" for any other
// error.
func remedy(err error) string {
	failure := new(fs.PathError)
	switch {
	case !errors.As(err, &failure):
	case errors.Is(failure, fs.ErrPermission):
		return OwnerOf(failure.Path) + ": give it to this user with chown, or name another one"
	case errors.Is(failure, syscall.EROFS):
		return ": name a file in a folder that can be written; in a systemd unit, LogsDirectory and StateDirectory " +
			"make one"
	case errors.Is(failure, fs.ErrNotExist):
		folder := filepath.Dir(failure.Path)
		if _, err := os.Stat(folder); err != nil {
			return ": make the folder " + folder
		}
	}
	return ""
}

// OwnerOf says to whom a file, or the nearest folder above it that exists, belongs and as whom
// this process runs; "" if the system does not tell.
func OwnerOf(path string) string {
	path, _ = filepath.Abs(path)
	info, err := os.Stat(path)
	for err != nil && path != filepath.Dir(path) {
		path = filepath.Dir(path)
		info, err = os.Stat(path)
	}
	if err != nil {
		return ""
	}
	owner := reflect.Indirect(reflect.ValueOf(info.Sys())).FieldByName("Uid") // no system but Unix has it
	if !owner.IsValid() {
		return ""
	}
	return fmt.Sprintf(" (%s belongs to user %d with mode %s, and this process runs as user %d)", path, owner.Uint(),
		info.Mode(), os.Geteuid())
}
