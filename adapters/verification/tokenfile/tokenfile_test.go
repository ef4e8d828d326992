package tokenfile

import (
	"crypto/sha256"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

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

	It("does not keep the file in memory through a subject", func() {
		first, second := strings.Repeat("a", 41), strings.Repeat("b", 40)
		content := sample(1, "subject="+first) + sample(2, "subject="+second)
		tokens, err := parse([]byte(content))
		Expect(err).NotTo(HaveOccurred())
		at := func(n byte) uintptr {
			return uintptr(unsafe.Pointer(unsafe.StringData(tokens[hash(n)].Subject)))
		}
		Expect(at(2)-at(1)).NotTo(BeEquivalentTo(strings.Index(content, second)-strings.Index(content, first)),
			"where it is in the file")
	})

	DescribeTable("accepts a file without a token", Label("J1"), func(content string) {
		tokens, err := parse([]byte(content))
		Expect(err).NotTo(HaveOccurred())
		Expect(tokens).To(BeEmpty())
	},
		Entry("that is empty", ""),
		Entry("with only comments", "# later\n"),
	)

	DescribeTable("reports a mistake with its line and remedy", Label("F9"), func(content, place, remedy string) {
		_, err := parse([]byte(content))
		Expect(err).To(MatchError(And(HavePrefix(place), ContainSubstring(remedy))))
		Expect(err.Error()).NotTo(ContainSubstring("AAAAAAAA"), "the hash")
	},
		Entry("a token in clear", sample(1)+"demo_secret subject=ada\n", "line 2: ", "pasteport hash-token"),
		Entry("another hash", "$2y$10$abcdefghijklmnopqrstuv role=editor\n", "line 1: ", "pasteport hash-token"),
		Entry("a hash of an older version", "$argon2id$v=19$m=19456,t=2,p=1$AAAA$AAAA subject=ada\n", "line 1: ",
			"again with \"pasteport hash-token"),
		Entry("a truncated hash", strings.Replace(sample(1), "AA\n", "\n", 1),
			"line 1: it does not begin with", "again"),
		Entry("a hash that is too long", strings.Replace(sample(1), "\n", "AAAA\n", 1),
			"line 1: it does not begin with", "again"),
		Entry("a hash with non-zero padding bits", strings.Replace(sample(1), "A\n", "B\n", 1),
			"line 1: it does not begin with", "again"),
		Entry("an unknown word", sample(1, "roles=editor"), `line 1: "roles" is unknown`, "role="),
		Entry("a word without a value", sample(1, "role="), `line 1: "role=" has no value`, "value"),
		Entry("a subject with a space", sample(1, "subject=Ada", "Lovelace"), `line 1: "Lovelace" has no value`,
			"without spaces"),
		Entry("two subjects", sample(1, "subject=ada", "subject=bob"), "line 1: it has two subjects", "keep one"),
		Entry("one token twice", sample(1)+sample(2)+sample(1, "role=editor"), "line 3: it is the same token as line 1",
			"keep one"),
		Entry("an escape sequence", sample(1, "role=\x1b[31m"), "line 1: it has bytes that are not text", "again"),
		Entry("a NUL", sample(1, "role=\x00"), "line 1: it has bytes that are not text", "again"),
		Entry("no UTF-8", sample(1, "role=\xff"), "line 1: it has bytes that are not text", "again"),
		Entry("an incomplete last line", sample(1)+strings.TrimSuffix(sample(2, "role=edit"), "\n"),
			"the last line has no line break", "add one"),
	)

	It("counts the characters of a token, not their bytes", func() {
		Expect(lineFor("", strings.Repeat("é", 20), ada)).To(HavePrefix("sha256:"))
		_, err := NewLine("", strings.Repeat("é", 19), ada)
		Expect(err).To(MatchError(ContainSubstring("fewer than 20 characters")))
	})

	DescribeTable("makes no line with", func(principal oauth.Principal) {
		_, err := NewLine("", alpha, principal)
		Expect(err).To(MatchError(ContainSubstring("it must be one word")))
	},
		Entry("a space in the subject", oauth.Principal{Subject: "ada role=editor"}),
		Entry("a line break in a role", oauth.Principal{Roles: []string{"editor\n# "}}),
		Entry("an empty role", oauth.Principal{Roles: []string{""}}),
		Entry("an escape sequence in a scope", oauth.Principal{Scopes: []string{"\x1b[31m"}}),
	)

	It("makes no line for a file with a mistake", func() {
		_, err := NewLine(written("role=editor\n"), alpha, ada)
		Expect(err).To(MatchError(ContainSubstring("line 1")))
	})
})
