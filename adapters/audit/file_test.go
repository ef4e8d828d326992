package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/audit"
	domain "github.com/pasteport/pasteport/domain/audit"
	"github.com/pasteport/pasteport/features/suite"
)

var _ = It("Calls in a log of text have the code of an error", Label("V1"), func(ctx SpecContext) {
	var text bytes.Buffer
	call, code := called(1), int64(-32602)
	call.Code = &code
	audit.Log(slog.New(slog.NewTextHandler(&text, nil)), false)(ctx, call)
	Expect(text.String()).To(ContainSubstring(" code=-32602 "))
})

// called returns the call with a number.
func called(number int) domain.Call {
	return domain.Call{
		Time:      time.Unix(1_700_000_000+int64(number), 0),
		Subject:   "ann",
		Client:    "https://client.example.com/id",
		Grant:     "g1",
		Resource:  "https://cms.example.com/mcp",
		Method:    "tools/call",
		Name:      fmt.Sprint("tool-", number),
		Arguments: []byte(`{"a":1}`),
		Outcome:   domain.OK,
		Status:    200,
		Duration:  1500 * time.Microsecond,
	}
}

// opened opens an audit file that closes with the spec.
func opened(o audit.Options) *audit.File {
	GinkgoHelper()
	file, err := audit.Open(o)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(file.Close)
	return file
}

// recorded writes a file of that many calls and closes it.
func recorded(o audit.Options, from, to int) {
	GinkgoHelper()
	file, err := audit.Open(o)
	Expect(err).NotTo(HaveOccurred())
	for number := from; number <= to; number++ {
		file.Record(context.Background(), called(number))
	}
	Expect(file.Close()).To(Succeed())
}

// rotate renames the file, as logrotate does, and opens another.
func rotate(file *audit.File, path string, number int) {
	GinkgoHelper()
	Expect(os.Rename(path, fmt.Sprint(path, ".", number))).To(Succeed())
	Expect(file.Reopen()).To(Succeed())
}

// rotated writes a file of that many calls, which is renamed after every 50, and closes it.
func rotated(path string, to int) {
	GinkgoHelper()
	file := opened(audit.Options{Path: path})
	for number := 1; number <= to; number++ {
		file.Record(context.Background(), called(number))
		if number%50 == 0 && number < to {
			rotate(file, path, number)
		}
	}
	Expect(file.Close()).To(Succeed())
}

// verified verifies files on disk.
func verified(expect string, names ...string) audit.Report {
	GinkgoHelper()
	var sources []audit.Source
	for _, name := range names {
		text, err := os.ReadFile(name)
		Expect(err).NotTo(HaveOccurred())
		sources = append(sources, audit.Source{Name: filepath.Base(name), Reader: bytes.NewReader(text)})
	}
	report, err := audit.Verify(expect, sources...)
	Expect(err).NotTo(HaveOccurred())
	return report
}

// all returns the files of an audit in the order of a shell.
func all(path string) []string {
	names, err := filepath.Glob(path + "*")
	Expect(err).NotTo(HaveOccurred())
	slices.Sort(names)
	return names
}

// calls returns the names of the tools in files.
func calls(names ...string) (tools []string) {
	GinkgoHelper()
	for _, name := range names {
		text, err := os.ReadFile(name)
		Expect(err).NotTo(HaveOccurred())
		for line := range strings.Lines(string(text)) {
			var call struct{ Name, Event string }
			Expect(json.Unmarshal([]byte(line), &call)).To(Succeed(), line)
			if call.Event == "" {
				tools = append(tools, call.Name)
			}
		}
	}
	return tools
}

var _ = Describe("An audit file", func() {
	var path string
	var options audit.Options
	BeforeEach(func() {
		path = filepath.Join(GinkgoT().TempDir(), "calls.jsonl")
		options = audit.Options{Path: path}
	})

	It("has one line for each call, which only its owner can read, with the arguments only on request",
		Label("V1", "V2", "V3"), func() {
			recorded(options, 1, 1)
			text, err := os.ReadFile(path)
			Expect(err).NotTo(HaveOccurred())
			_, line, _ := strings.Cut(string(text), "\n")
			Expect(line).
				To(HavePrefix(`{"time":"2023-11-14T22:13:21.000000Z","subject":"ann",` +
					`"client":"https://client.example.com/id","grant":"g1",` +
					`"resource":"https://cms.example.com/mcp","method":"tools/call","name":"tool-1",` +
					`"arguments_sha256":"015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862",` +
					`"outcome":"ok","status":200,"duration_ms":1.5,"seq":2,"prev":"`))
			info, err := os.Stat(path)
			Expect(err).NotTo(HaveOccurred())
			Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
			options.Arguments = true
			recorded(options, 2, 2)
			Expect(os.ReadFile(path)).To(WithTransform(func(text []byte) int {
				return bytes.Count(text, []byte(`"arguments":{"a":1},`))
			}, Equal(1)))
		})

	It("continues the chain after a restart, and begins another in a new file", Label("V4"), func() {
		recorded(options, 1, 3)
		recorded(options, 4, 5)
		report := verified("", path)
		Expect(report.Problems).To(BeEmpty())
		Expect(report.Last).To(BeEquivalentTo(6))
		Expect(os.Rename(path, path+".1")).To(Succeed()) // while no service runs
		recorded(options, 6, 7)
		report = verified("", path+".1", path)
		Expect(report.Problems).To(BeEmpty())
		Expect(report.Notes).To(ConsistOf(HaveField("Text", HavePrefix("another chain begins"))))
		Expect(verified("", path, path).Problems).
			To(ContainElement(HaveField("Text", HavePrefix("its chain has begun before"))))
	})

	It("is verified across chains, in whatever order its files are named", Label("V4"), func() {
		file := opened(options)
		file.Record(context.Background(), called(1))
		rotate(file, path, 2)
		file.Record(context.Background(), called(2))
		Expect(file.Close()).To(Succeed())
		Expect(os.Rename(path, path+".1")).To(Succeed()) // while no service runs
		recorded(options, 3, 3)
		newest := verified("", path).Hash
		for _, names := range [][]string{{path, path + ".1", path + ".2"}, {path + ".1", path + ".2", path}} {
			report := verified(newest, names...)
			Expect(report.Problems).To(BeEmpty())
			Expect(report.Notes).To(ConsistOf(HaveField("Text", HavePrefix("another chain begins"))))
		}
	})

	It("goes on in the renamed file when the one at the path is of another chain", Label("V4"), func() {
		file := opened(options)
		file.Record(context.Background(), called(1))
		Expect(os.Rename(path, path+".1")).To(Succeed())
		other := filepath.Join(filepath.Dir(path), "other.jsonl")
		recorded(audit.Options{Path: other}, 7, 7)
		Expect(os.Rename(other, path)).To(Succeed())
		foreign, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(file.Reopen()).To(MatchError(audit.ErrUnchained))
		file.Record(context.Background(), called(2))
		Expect(calls(path + ".1")).To(Equal([]string{"tool-1", "tool-2"}))
		Expect(os.ReadFile(path)).To(Equal(foreign))
		Expect(os.Remove(path)).To(Succeed())
		Expect(file.Reopen()).To(Succeed())
		Expect(verified("", path+".1", path).Problems).To(BeEmpty())
	})

	DescribeTable("removes a line that a crash has cut off and says so", Label("V4"), func(cut int) {
		recorded(options, 1, 3)
		text, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.Truncate(path, int64(len(text)-cut))).To(Succeed())
		report := verified("", path)
		Expect(report.Problems).To(BeEmpty())
		Expect(report.Notes).To(ConsistOf(HaveField("Text", ContainSubstring("cut off"))))
		recorded(options, 4, 4)
		report = verified("", path)
		Expect(report.Problems).To(BeEmpty())
		Expect(report.Notes).To(ConsistOf(HaveField("Text", ContainSubstring("cut off by a crash"))))
		Expect(calls(path)).To(Equal([]string{"tool-1", "tool-2", "tool-4"}))
	}, Entry("in its middle", 100), Entry("before its last byte", 2),
		Entry("before its line feed", 1))

	It("is not continued after a last line without a valid hash, nor by a second process", Label("V4"), func() {
		Expect(os.WriteFile(path, []byte("{\"time\":\"x\"}\n"), 0o600)).To(Succeed())
		_, err := audit.Open(options)
		Expect(err).To(MatchError(audit.ErrUnchained))
		Expect(os.Remove(path)).To(Succeed())
		opened(options)
		_, err = audit.Open(options)
		Expect(err).To(MatchError(audit.ErrLocked))
	})

	It("reports an outage of the disk once, and then writes the lines that have waited", Label("V5"), func() {
		var log bytes.Buffer
		options.Logger = slog.New(slog.NewTextHandler(&log, nil))
		file := opened(options)
		file.Record(context.Background(), called(1))
		heal := audit.Break(file)
		for number := 2; number <= 4; number++ {
			file.Record(context.Background(), called(number))
		}
		Expect(file.Ready()).NotTo(Succeed())
		Expect(strings.Count(log.String(), "cannot write the audit file")).To(Equal(1))
		heal()
		Expect(file.Ready()).To(Succeed())
		Expect(log.String()).To(ContainSubstring("can be written again"))
		file.Record(context.Background(), called(5))
		Expect(calls(path)).To(Equal([]string{"tool-1", "tool-2", "tool-3", "tool-4", "tool-5"}))
		Expect(verified("", path).Problems).To(BeEmpty())
		Expect(file.Written()).To(BeEquivalentTo(6))
	})
})

func TestAudit(t *testing.T) { suite.Run(t, "Audit") }
