package audit_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/audit"
)

var _ = Describe("An audit file that could not be written until its process ended", func() {
	var path string
	var options audit.Options
	BeforeEach(func() {
		path = filepath.Join(GinkgoT().TempDir(), "calls.jsonl")
		options = audit.Options{Path: path, Chain: true}
	})

	It("has the number of missing lines, and the time of the first, after a restart", Label("V4", "V5"), func() {
		now := time.Unix(1_700_000_000, 0)
		options.Now = func() time.Time { return now }
		file := opened(options)
		file.Record(context.Background(), called(1))
		audit.Break(file)
		file.Record(context.Background(), called(2))
		now = now.Add(time.Minute)
		file.Record(context.Background(), called(3))
		pending, _ := audit.Pending(path)
		Expect(pending.Text).To(Equal("calls after its last line that could not be written: 2 from " +
			"2023-11-14T22:13:20.000000Z to 2023-11-14T22:14:20.000000Z"))
		Expect(file.Close()).To(Succeed())
		file.Record(context.Background(), called(4)) // of a request that outlives the service
		now = now.Add(time.Hour)
		recorded(options, 5, 5)
		recorded(options, 6, 6)
		report := verified("", path)
		Expect(report.Problems).To(BeEmpty())
		Expect(report.Notes).To(ConsistOf(HaveField("Text",
			"calls before it that could not be written: 3 since 2023-11-14T22:13:20.000000Z")))
		text, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(ContainSubstring(
			`{"time":"2023-11-14T23:14:20.000000Z","event":"lost","lines":3,` +
				`"since":"2023-11-14T22:13:20.000000Z","seq":3,`))
		Expect(calls(path)).To(Equal([]string{"tool-1", "tool-5", "tool-6"}))
		_, found := audit.Pending(path)
		Expect(found).To(BeFalse())
	})

	It("keeps the number of missing lines over restarts on a disk that is still full", Label("V5"), func() {
		if _, err := os.Stat("/dev/full"); err != nil {
			Skip("this system has no device that is always full")
		}
		Expect(os.Symlink("/dev/full", path)).To(Succeed())
		var log bytes.Buffer
		options.Chain, options.Logger = false, slog.New(slog.NewTextHandler(&log, nil))
		for restart := range 3 {
			file := opened(options)
			file.Record(context.Background(), called(restart))
			_ = file.Close() // the device cannot be flushed
			Expect(strings.Count(log.String(), "cannot write the audit file")).To(Equal(restart + 1))
		}
		Expect(os.Remove(path)).To(Succeed())
		recorded(options, 4, 4)
		text, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).
			To(MatchRegexp(`^{"time":"[^"]+","event":"lost","lines":3,"since":"[^"]+"}\n.*"name":"tool-4".*\n$`))
	})

	It("warns at the start if it cannot keep the number of missing lines", Label("V5"), func() {
		var log bytes.Buffer
		options.Logger = slog.New(slog.NewTextHandler(&log, nil))
		beside := filepath.Join(filepath.Dir(path), ".calls.jsonl.lost")
		Expect(os.WriteFile(beside, []byte("of others"), 0o600)).To(Succeed())
		recorded(options, 1, 1)
		Expect(log.String()).To(ContainSubstring("will be forgotten at a restart"))
		Expect(os.ReadFile(beside)).To(BeEquivalentTo("of others"))
		pending, _ := audit.Pending(path)
		Expect(pending.Text).To(ContainSubstring("has other content"))
	})
})
