package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"regexp"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

// withoutOrigins removes the comments of "pasteport config" about the source of a value.
func withoutOrigins(printed string) string {
	return regexp.MustCompile(`(?m) # (default|file f\.yaml:\d+)$`).ReplaceAllString(printed, "")
}

var _ = Describe("Durations", func() {
	DescribeTable("are printed without units that are zero", func(value time.Duration, text string) {
		Expect(FormatDuration(value)).To(Equal(text))
		if value != 0 {
			Expect(parseDuration(text)).To(Equal(value))
		}
	},
		Entry(nil, time.Hour, "1h"), Entry(nil, 20*time.Hour, "20h"), Entry(nil, 90*time.Minute, "1h30m"),
		Entry(nil, 10*time.Minute, "10m"), Entry(nil, time.Hour+10*time.Second, "1h0m10s"),
		Entry(nil, 30*time.Second, "30s"), Entry(nil, time.Duration(0), "0s"))
})

var _ = Describe("Sizes", func() {
	DescribeTable("have units, and are printed in the largest exact one",
		func(typed string, bytes int64, printed string) {
			Expect(parseSize(typed)).To(Equal(bytes))
			Expect(formatSize(bytes)).To(Equal(printed))
			Expect(parseSize(printed)).To(Equal(bytes))
		},
		Entry(nil, "4MiB", int64(4<<20), "4MiB"), Entry(nil, "4194304", int64(4<<20), "4MiB"),
		Entry(nil, "1.5 GiB", int64(3<<29), "1536MiB"), Entry(nil, "4MB", int64(4_000_000), "4000000"),
		Entry(nil, "512k", int64(512_000), "500KiB"), Entry(nil, "1", int64(1), "1"))

	DescribeTable("are not", func(typed string) {
		var read int64
		Expect(parse(typed, reflect.ValueOf(&read).Elem())).NotTo(Succeed())
	}, Entry(nil, ""), Entry(nil, "0"), Entry(nil, "-1"), Entry(nil, "much"), Entry(nil, "16EiB"), Entry(nil, "4MiB x"))
})

var _ = It("Quotation marks inside an item of a list are a part of it", func() {
	var s sample
	table, flags := s.table(), new(cobra.Command)
	table.Flags(flags)
	Expect(flags.ParseFlags([]string{`--some-texts=KEY=s3cret sh -c "a b",c`, `--some-texts="d,e",f`, "--a-pause=0d"})).
		To(Succeed())
	Expect(table.Read()).To(Succeed())
	Expect(s.Texts).To(Equal([]string{`KEY=s3cret sh -c "a b"`, "c", "d,e", "f"}))
	Expect(s.Pause).To(Equal(oauth.Off))
	Expect(flags.ParseFlags([]string{`--some-texts="s3cret a, b`})).To(Succeed())
	Expect(table.Explain(table.Read())).
		To(MatchError("--some-texts is [hidden], which is not a list: write a list of texts"))
})

var _ = Describe("Mappings", func() {
	It("are read from flags in JSON, whose values are not repeated if they are wrong", func() {
		var s sample
		table, flags := s.table(), new(cobra.Command)
		table.Flags(flags)
		Expect(flags.ParseFlags([]string{`--people={"name": "Ada", "age": 36, "tags": ["x: y", "true"]}`,
			`--people=[{"name": "12"}]`})).To(Succeed())
		Expect(table.Read()).To(Succeed())
		people := []person{{Name: "Ada", Age: 36, Tags: []string{"x: y", "true"}}, {Name: "12"}}
		Expect(s.Mappings).To(Equal(people))
		Expect(flags.ParseFlags([]string{`--people=[{"name": "s3cret"]`, "--a-time=soon"})).To(Succeed())
		Expect(table.Explain(table.Read())).To(MatchError(And(
			ContainSubstring(`--people is [hidden], which is not JSON: write a list of people`),
			ContainSubstring(`--a-time is "soon": write a duration`), Not(ContainSubstring("s3cret")))))
		Expect(s.Mappings).To(Equal(people))
	})

	DescribeTable("are refused with their number and without their values", func(text, reason string) {
		table := new(sample).table()
		Expect(table.Explain(table.readText([]byte(text)))).
			To(MatchError(And(ContainSubstring(reason), Not(ContainSubstring("s3cret")))))
	},
		Entry("that have an unknown key", "people: [{name: Ada}, {nmae: s3cret}]",
			`people (from f.yaml:1): number 2 has the unknown key "nmae": write name, age, tags`),
		Entry("that have a value of another type", "people: [{name: Ada, age: s3cret}]",
			"number 1 has a key twice or a value of another type"),
	)
})

var _ = Describe("Explaining mistakes", func() {
	DescribeTable("says to whom a file belongs, or what to make", func(path string, cause error, said string) {
		err := &fs.PathError{Op: "open", Path: path, Err: cause}
		Expect(new(Table).Explain(oauth.NewMistake("logo", "cannot be read: %w", err))).
			To(MatchError(And(HavePrefix("logo cannot be read: open"), ContainSubstring(said))))
		Expect(new(Table).Explain(fmt.Errorf("opening it: %w", err))).To(MatchError(ContainSubstring(said)))
	},
		Entry("for a file of another user", "/", syscall.EACCES, "(/ belongs to user 0 with mode"),
		Entry("and the command", "/", syscall.EACCES, "give it to this user with chown"),
		Entry("for a folder that systemd protects", "/", syscall.EROFS, "LogsDirectory"),
		Entry("for a folder that is missing", "/nowhere/x", syscall.ENOENT, ": make the folder /nowhere"))

	It("finds every mistake in a tree of errors, by its field or its setting, with its line", func() {
		table := new(sample).table()
		Expect(table.readText([]byte("a-text: x\n\na-time: 2h\n"))).To(Succeed())
		wrong := func(name string) error { return oauth.NewMistake(name, "is odd") }
		Expect(table.Explain(errors.Join(fmt.Errorf("configuration: %w", errors.Join(wrong("SomeTTL"),
			wrong("a-switch"))), nil, fmt.Errorf("reading: %w", errors.New("something else"))))).
			To(MatchError("3 settings are wrong:\n  a-time (from f.yaml:3) is odd\n  a-switch is odd\n" +
				"  reading: something else"))
		Expect(table.Explain(wrong("Unknown"))).To(MatchError("Unknown is odd"))
		Expect(table.Explain(errors.Join(nil, nil))).To(Succeed())
		var printed bytes.Buffer
		Expect(table.WriteEffective(&printed, true)).To(Succeed())
		Expect(printed.String()).To(ContainSubstring("a-time: 2h # file f.yaml:3\n"))
	})
})

func TestSettings(t *testing.T) {
	suite.Run(t, "Settings")
}

// sample has a setting of every kind.
type sample struct {
	Text     string        `set:"a-text" group:"Every kind" doc:"a text"`
	Secret   string        `set:"a-secret" group:"Every kind" secret:"true" doc:"a secret"`
	Switch   bool          `set:"a-switch" group:"Every kind" doc:"a switch"`
	Choice   string        `set:"a-choice" group:"Every kind" default:"red" choices:"red,blue" doc:"a choice"`
	Number   int           `set:"a-number" group:"Every kind" default:"7" min:"1" doc:"a number"`
	Size     int64         `set:"a-size" group:"Every kind" default:"4MiB" min:"1KiB" max:"1GiB" doc:"a size"`
	SomeTTL  time.Duration `set:"a-time" group:"Every kind" default:"1h" min:"1m" max:"2h" doc:"a time"`
	Pause    time.Duration `set:"a-pause" group:"Every kind" min:"1m" max:"2h" off:"true" doc:"a pause"`
	Texts    []string      `set:"some-texts" group:"Every kind" doc:"some texts"`
	Mappings []person      `set:"people" group:"Every kind" allowed:"people" doc:"people"`
}

type person struct {
	Name string   `json:"name" yaml:"name" jsonschema:"the name"`
	Age  int      `json:"age,omitempty" yaml:"age,omitempty" jsonschema:"in years"`
	Tags []string `json:"tags,omitempty" yaml:"tags,omitempty" jsonschema:"words"`
}

func (s *sample) table() *Table { return NewTable(s, "Every kind") }

// readText reads the settings from the text of a file.
func (t *Table) readText(text []byte) error {
	entries, err := t.parseFile("f.yaml", text)
	mistakes := []error{err}
	for _, s := range t.settings {
		mistakes = append(mistakes, s.read(entries[s.name], true))
	}
	return errors.Join(mistakes...)
}

// FuzzFile reads any file without harm; what it takes is printed in a way that reads the same
// again.
func FuzzFile(f *testing.F) {
	f.Fuzz(func(t *testing.T, text []byte) {
		var first, second sample
		table := first.table()
		if table.readText(text) != nil {
			return
		}
		first.Secret = "" // is never printed
		var printed, again bytes.Buffer
		if err := table.WriteEffective(&printed, false); err != nil {
			t.Fatal(err)
		}
		reread := second.table()
		if err := reread.readText(printed.Bytes()); err != nil {
			t.Fatalf("%v in\n%s", err, printed.String())
		}
		if err := reread.WriteEffective(&again, false); err != nil {
			t.Fatal(err)
		}
		if withoutOrigins(printed.String()) != withoutOrigins(again.String()) {
			t.Fatalf("first\n%s\nthen\n%s", printed.String(), again.String())
		}
	})
}
