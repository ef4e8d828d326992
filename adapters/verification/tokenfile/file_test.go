package tokenfile

import (
	"bytes"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Verifying with a token file", func() {
	var log *bytes.Buffer
	var logger *slog.Logger
	BeforeEach(func() {
		log = new(bytes.Buffer)
		logger = slog.New(slog.NewTextHandler(log, nil))
	})
	open := func(path string) *File {
		GinkgoHelper()
		file, err := Open(path, logger)
		Expect(err).NotTo(HaveOccurred())
		return file
	}

	DescribeTable("uses the last valid content, and logs the error once, while the file",
		Label("B9"), func(ctx SpecContext, spoil func(path string), said string) {
			good := lineFor("", alpha, ada)
			path := written(good)
			file := open(path)
			spoil(path)
			for range 2 {
				Expect(file.VerifyBearer(ctx, alpha)).To(Equal(ada))
			}
			Expect(strings.Count(log.String(), "token file cannot be used")).To(Equal(1))
			Expect(log.String()).To(And(ContainSubstring(path), ContainSubstring(said)))
			Expect(os.RemoveAll(path)).To(Succeed())
			replace(path, good)
			Expect(file.VerifyBearer(ctx, alpha)).To(Equal(ada))
			Expect(log.String()).To(ContainSubstring("token file is valid again"))
		},
		Entry("was emptied just now, as by an editor", func(path string) {
			replace(path, "")
			soon := time.Now().Add(emptyDelay - time.Second/10) // for slow machines
			Expect(os.Chtimes(path, time.Time{}, soon)).To(Succeed())
		}, "was emptied just now"),
		Entry("is a folder", func(path string) {
			Expect(os.Remove(path)).To(Succeed())
			Expect(os.Mkdir(path, 0o700)).To(Succeed())
		}, "is a directory"),
	)

	It("opens a file without a token", func(ctx SpecContext) {
		path := written("")
		file := open(path)
		replace(path, lineFor(path, alpha, ada))
		Expect(file.VerifyBearer(ctx, alpha)).To(Equal(ada))
	})

	DescribeTable("does not open a file that", func(prepare func() string, said string) {
		_, err := Open(prepare(), logger)
		Expect(err).To(MatchError(ContainSubstring(said)))
	},
		Entry("is in UTF-16", func() string { return written("\xff\xfea\x00\n\x00") }, "write it again in UTF-8"),
		Entry("is in UTF-16 of the other order", func() string { return written("\xfe\xff\x00a\x00\n") },
			"write it again in UTF-8"),
	)

	It("can be changed during verifications", func(ctx SpecContext) {
		path := written(lineFor("", alpha, ada))
		content, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		file, lines := open(path), string(content)
		var asking sync.WaitGroup
		for range 4 {
			asking.Go(func() {
				defer GinkgoRecover()
				for range 5 {
					Expect(file.VerifyBearer(ctx, alpha)).To(Equal(ada))
				}
			})
		}
		for n := range 50 {
			replace(path, "# "+strconv.Itoa(n)+"\n"+lines)
		}
		asking.Wait()
	})
})

func FuzzParse(f *testing.F) {
	for _, content := range []string{"", sample(1), sample(1, "subject=ada", "role=editor", "scope=mcp"),
		"# x\n\n" + sample(2, "role=a", "role=b") + sample(3)} {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		tokens, err := parse(content)
		if err != nil {
			return
		}
		var again strings.Builder
		for _, line := range tokens {
			if err := line.Check(); err != nil {
				t.Fatal(err)
			}
			again.WriteString(line.String() + "\n")
		}
		same, err := parse([]byte(again.String()))
		if err != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		if len(same) != len(tokens) {
			t.Fatal("a line was lost")
		}
	})
}
