package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"

	"github.com/pasteport/pasteport/domain/oauth"
)

// withoutOrigins removes the comments of "pasteport config" about the source of a value.
func withoutOrigins(printed string) string {
	return regexp.MustCompile(`(?m) # (default|file f\.yaml:\d+)$`).ReplaceAllString(printed, "")
}

var _ = Describe("Printing durations", func() {
	DescribeTable("omits zero units only", func(value time.Duration, text string) {
		Expect(FormatDuration(value)).To(Equal(text))
		if value != 0 {
			Expect(notZero(text)).To(Equal(value))
		}
	},
		Entry(nil, time.Hour, "1h"), Entry(nil, 20*time.Hour, "20h"), Entry(nil, 90*time.Minute, "1h30m"),
		Entry(nil, 10*time.Minute, "10m"),
		Entry(nil, time.Hour+10*time.Second, "1h0m10s"), Entry(nil, 30*time.Second, "30s"),
		Entry(nil, time.Duration(0), "0s"), Entry(nil, -time.Second, "-1s"))
})

var _ = Describe("Naming the remedy for a file that cannot be used", func() {
	DescribeTable("says to whom it belongs, or what to make", func(path string, cause error, said string) {
		err := &fs.PathError{Op: "open", Path: path, Err: cause}
		mistake := oauth.NewMistake("%s cannot be read: %s", oauth.Field("LogoFile"), err)
		Expect(new(Table).Explain(mistake)).To(MatchError(And(HavePrefix("LogoFile cannot be read: open"),
			ContainSubstring(said))))
		Expect(new(Table).Explain(fmt.Errorf("opening it: %w", err))).To(MatchError(ContainSubstring(said)))
	},
		Entry("for a file of another user", "/", syscall.EACCES, "(/ belongs to root (0) with mode"),
		Entry("and the command", "/", syscall.EACCES, "give it to this user with chown"),
		Entry("for a folder that systemd protects", "/", syscall.EROFS, "LogsDirectory"),
		Entry("for a folder that is missing", "/nowhere/x", syscall.ENOENT, ": make the folder /nowhere"))

	It("names no folder for a file that is missing in its folder", func() {
		_, err := os.Stat("missing")
		Expect(new(Table).Explain(err)).To(MatchError(HaveSuffix("no such file or directory")))
	})
})

var _ = Describe("Reading sizes", func() {
	DescribeTable("accepts units, and prints the largest exact unit", func(typed string, bytes int64, printed string) {
		Expect(parseSize(typed)).To(Equal(bytes))
		Expect(FormatSize(bytes)).To(Equal(printed))
		Expect(parseSize(printed)).To(Equal(bytes))
		Expect(typed).To(MatchRegexp(sizePattern))
	},
		Entry(nil, "4MiB", int64(4<<20), "4MiB"), Entry(nil, "4194304", int64(4<<20), "4MiB"),
		Entry(nil, "1.5 GiB", int64(3<<29), "1536MiB"),
		Entry(nil, "4MB", int64(4_000_000), "4000000"), Entry(nil, "512k", int64(512_000), "500KiB"),
		Entry(nil, "1", int64(1), "1"))

	DescribeTable("refuses", func(typed string) {
		read := int64(7)
		Expect(size(&read).set([]string{typed})).NotTo(Succeed())
		Expect(read).To(Equal(int64(7)))
	}, Entry(nil, ""), Entry(nil, "0"), Entry(nil, "-1"), Entry(nil, "much"), Entry(nil, "16EiB"), Entry(nil, "4MiB x"))
})

var _ = Describe("Reading lists", func() {
	It("keeps the previous list when an item is wrong", func() {
		ports := []int{1}
		item := Item[int]{Parse: func(s string) (n int, err error) {
			_, err = fmt.Sscanf(s, "%d", &n)
			return
		}, Format: func(n int) string { return fmt.Sprint(n) }}
		l := listOf(&ports, item)
		wrong := new(wrongText)
		Expect(errors.As(l.set([]string{"2", "x"}), &wrong)).To(BeTrue())
		Expect([]any{wrong.text, wrong.number}).To(Equal([]any{"x", 2}))
		Expect(ports).To(Equal([]int{1}))
		Expect(l.set([]string{"2", "3"})).To(Succeed())
		Expect(ports).To(Equal([]int{2, 3}))
		Expect(l.texts()).To(Equal([]string{"2", "3"}))
	})

	It("refuses an unclosed quote", func() {
		_, err := splitLines(`"a,b`)
		Expect(err).To(HaveOccurred())
	})
})

var _ = Describe("Reading mappings", func() {
	people := []person{{Name: "Ada", Age: 36, Tags: []string{"x: y", "true"}}, {Name: "12"}}
	read := func(text string) (sample, error) {
		var s sample
		err := errors.Join(s.table().readText([]byte(text))...)
		return s, err
	}

	DescribeTable("accepts", func(text string) {
		s, err := read(text)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.mappings).To(Equal(people))
	},
		Entry("a block", "people:\n- name: Ada\n  age: 36\n  tags: ['x: y', 'true']\n- {name: '12'}\n"),
		Entry("flow", `people: [{name: Ada, age: 36, tags: ["x: y", "true"]}, {name: "12"}]`))

	It("accepts one item without a list", func() {
		s, err := read("people: {name: Ada}\none-or-more: a, b\n")
		Expect(err).NotTo(HaveOccurred())
		Expect(s.mappings).To(Equal([]person{{Name: "Ada"}}))
		Expect(s.oneOrMore).To(Equal([]string{"a, b"}))
	})

	It("accepts flags in JSON, and takes an invalid value of one as a mistake of all", func() {
		var s sample
		table, flags := s.table(), new(cobra.Command)
		table.Flags(flags)
		Expect(flags.ParseFlags([]string{`--people={"name": "Ada", "age": 36, "tags": ["x: y", "true"]}`,
			`--people=[{"name": "12"}]`})).To(Succeed())
		Expect(table.Read()).To(Succeed())
		Expect(s.mappings).To(Equal(people))
		Expect(flags.ParseFlags([]string{`--people=[{"name": "s3cret"]`, "--a-time=soon"})).To(Succeed())
		Expect(table.Read()).To(MatchError(And(ContainSubstring(`--people is "[hidden]": write a list of people`),
			ContainSubstring(`--a-time is "soon": write a duration`), Not(ContainSubstring("s3cret")))))
	})

	DescribeTable("refuses, with its number and without its values,", func(text, reason string) {
		_, err := read(text)
		Expect(err).To(MatchError(And(ContainSubstring(reason), Not(ContainSubstring("s3cret")))))
	},
		Entry("an unknown key", "people: [{name: Ada}, {nmae: s3cret}]",
			`people (from f.yaml:1): number 2: the mapping cannot be read: the key "nmae" is unknown`),
		Entry("a value of another type", "people: [{name: Ada, age: s3cret}]",
			"number 1: age has a value of another type: write int"),
		Entry("a key twice", "people: [{name: s3cret, name: b}]", "number 1: it is not a mapping"),
		Entry("a list in the list", "people: [[s3cret]]", "people (from f.yaml:1) is a list: write a list of people"),
		Entry("an item without the list", "some-texts: a",
			`some-texts (from f.yaml:1) is a: put each item on a line below the name, after "- ", because the value `+
				"is a list of texts"),
		Entry("a mapping for a text", "some-texts: [{a: b}]",
			"some-texts (from f.yaml:1) is a list: write a list of texts"),
		Entry("a text with a colon that has no quotes", "one-or-more: X-Api-Key: s3cret",
			"put a value that has a colon and a space in quotes, such as 'X-Api-Key: {token}'"),
		Entry("a text", "people: [Ada]", `people (from f.yaml:1) is "Ada": write a list of people`))

	It("prints mappings as YAML that reads the same again", func() {
		var s sample
		table, printed := s.table(), new(bytes.Buffer)
		Expect(errors.Join(
			table.readText([]byte(`people: [{name: Ada, age: 36, tags: ["x: y", "true"]}, {name: "12"}]`))...)).
			To(Succeed())
		Expect(table.WriteEffective(printed, false)).To(Succeed())
		Expect(printed.String()).To(ContainSubstring("\n  - name: Ada\n    age: 36\n"))
		again, err := read(printed.String())
		Expect(err).NotTo(HaveOccurred())
		Expect(again.mappings).To(Equal(people))
	})
})

var _ = Describe("Suggesting names", func() {
	DescribeTable("finds the nearest", func(typed, meant string) {
		Expect(new(sample).table().nearest(typed)).To(Equal(meant))
	},
		Entry(nil, "a-txt", "a-text"), Entry(nil, "A-TEXT", "a-text"), Entry(nil, "a_switch", "a-switch"),
		Entry(nil, "a-secre", "a-secret"),
		Entry("or none for a short name", "b", ""), Entry("or none for a different name", "completely-different", ""))
})

var _ = Describe("Explaining mistakes", func() {
	var s sample
	var table *Table
	BeforeEach(func() {
		s = sample{}
		table = s.table()
	})

	wrong := func(field oauth.Field) error { return oauth.NewMistake("%s is odd", field) }

	It("finds every mistake in a tree of errors", func() {
		other := errors.New("something else")
		tree := errors.Join(fmt.Errorf("configuration: %w", errors.Join(wrong("SomeTTL"), wrong("on"))), nil,
			fmt.Errorf("reading: %w", other))
		Expect(table.Explain(tree)).
			To(MatchError("3 settings are wrong:\n  a-time is odd\n  a-switch is odd\n  reading: something else"))
	})

	It("returns a single mistake on one line, and no error without mistakes", func() {
		Expect(table.Explain(wrong("text"))).To(MatchError("a-text is odd"))
		Expect(table.Explain(wrong("Unknown"))).To(MatchError("Unknown is odd"))
		Expect(table.Explain(errors.Join(nil, nil))).To(Succeed())
	})

	It("names the source of a value", func() {
		Expect(errors.Join(table.readText([]byte("a-text: x\n\na-time: 2h\n"))...)).To(Succeed())
		Expect(table.Explain(wrong("SomeTTL"))).To(MatchError("a-time (from f.yaml:3) is odd"))
		Expect(s.long).To(Equal(2 * time.Hour))
		var printed bytes.Buffer
		Expect(table.WriteEffective(&printed, false)).To(Succeed())
		Expect(printed.String()).
			To(And(ContainSubstring("a-time: 2h # file f.yaml:3\n"), ContainSubstring("a-choice: red # default\n")))
	})
})
