package tokenfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

func TestTokenFile(t *testing.T) {
	suite.Run(t, "Token file")
}

// sample returns the n-th valid line, whose token is unknown.
func sample(n byte, words ...string) string {
	return strings.Join(append([]string{hash(n)}, words...), " ") + "\n"
}

func hash(n byte) string {
	sum := [sha256.Size]byte{n}
	return hashPrefix + base64.RawURLEncoding.EncodeToString(sum[:])
}

func written(content string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "tokens")
	Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return path
}

func replace(path, content string) {
	GinkgoHelper()
	Expect(os.WriteFile(path+".new", []byte(content), 0o600)).To(Succeed())
	Expect(os.Rename(path+".new", path)).To(Succeed())
}

func lineFor(path, token string, principal oauth.Principal) string {
	GinkgoHelper()
	entry, err := NewLine(path, token, principal)
	Expect(err).NotTo(HaveOccurred())
	return entry.String() + "\n"
}

const alpha, beta = "alpha-with-20-letters", "beta-with-20-letters"

var ada = oauth.Principal{Subject: "ada", Roles: []string{"editor", "author"}, Scopes: []string{"mcp"}}

var _ = Describe("Reading a token file", func() {
	It("accepts lines with and without words, comments, blank lines, a byte order mark and carriage returns", func() {
		tokens, err := parse(
			[]byte("\ufeff# people\r\n\n" +
				strings.ReplaceAll(sample(1, "subject=ada", "role=editor", "role=author", "\tscope=mcp"), "\n",
					"\r\n") + "   \n" + sample(2)))
		Expect(err).NotTo(HaveOccurred())
		Expect(tokens).To(Equal(map[string]Line{hash(1): {hash(1), ada, 3}, hash(2): {hash: hash(2), number: 5}}))
	})

	DescribeTable("reports a mistake with its line and remedy", Label("F9"), func(content, place, remedy string) {
		_, err := parse([]byte(content))
		Expect(err).To(MatchError(And(HavePrefix(place), ContainSubstring(remedy))))
		Expect(err.Error()).NotTo(ContainSubstring("AAAAAAAA"), "the hash")
	},
		Entry("a token in clear", sample(1)+"demo_secret subject=ada\n", "line 2: ", "pasteport hash-token"),
		Entry("a truncated hash", strings.Replace(sample(1), "AA\n", "\n", 1),
			"line 1: it does not begin with", "again"),
		Entry("a hash with non-zero padding bits", strings.Replace(sample(1), "A\n", "B\n", 1),
			"line 1: it does not begin with", "again"),
		Entry("an unknown word", sample(1, "roles=editor"), `line 1: "roles" is unknown`, "role="),
		Entry("a subject with a space", sample(1, "subject=Ada", "Lovelace"), `line 1: "Lovelace" has no value`,
			"without spaces"),
		Entry("two subjects", sample(1, "subject=ada", "subject=bob"), "line 1: it has two subjects", "keep one"),
		Entry("one token twice", sample(1)+sample(2)+sample(1, "role=editor"), "line 3: it is the same token as line 1",
			"keep one"),
		Entry("an escape sequence", sample(1, "role=\x1b[31m"), "line 1: it has bytes that are not text", "again"),
		Entry("an incomplete last line", sample(1)+strings.TrimSuffix(sample(2, "role=edit"), "\n"),
			"the last line has no line break", "add one"),
	)

	It("counts the characters of a token, not their bytes", func() {
		Expect(lineFor("", strings.Repeat("é", 20), ada)).To(HavePrefix("sha256:"))
		_, err := NewLine("", strings.Repeat("é", 19), ada)
		Expect(err).To(MatchError(ContainSubstring("fewer than 20 characters")))
	})

	It("makes no line with what is not one word", func() {
		for _, principal := range []oauth.Principal{{Subject: "ada role=editor"}, {Roles: []string{"editor\n# "}},
			{Roles: []string{""}}, {Scopes: []string{"\x1b[31m"}}} {
			_, err := NewLine("", alpha, principal)
			Expect(err).To(MatchError(ContainSubstring("it must be one word")))
		}
	})
})

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
