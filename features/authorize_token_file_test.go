package features_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// TokenFile is the path of a file with hashed tokens.
type TokenFile string

// NewTokenFile writes a file with a line for each token and its flags, such as "--role=editor".
func NewTokenFile(ctx context.Context, tokens ...[]string) TokenFile {
	GinkgoHelper()
	file, text := TokenFile(filepath.Join(GinkgoT().TempDir(), "tokens")), "# people\n"
	file.Save(text)
	for _, words := range tokens {
		text += file.Line(ctx, words...)
		file.Save(text)
	}
	return file
}

func (f TokenFile) Line(ctx context.Context, words ...string) string {
	GinkgoHelper()
	hashed := RunTyping(ctx, words[0]+"\n", append([]string{"hash-token", "--token-file", string(f)}, words[1:]...)...)
	Expect(hashed.Code).To(BeZero(), hashed.Err)
	return hashed.Out
}

// Save replaces the file atomically.
func (f TokenFile) Save(text string) {
	GinkgoHelper()
	Expect(os.WriteFile(string(f)+"~", []byte(text), 0o600)).To(Succeed())
	Expect(os.Rename(string(f)+"~", string(f))).To(Succeed())
}

func (f TokenFile) Text() string {
	GinkgoHelper()
	return string(must(os.ReadFile(string(f))))
}

func (f TokenFile) verify(config *service.Config) {
	config.Verification = service.Verification{Verifier: service.VerifierFile, TokenFile: string(f)}
}

var _ = Describe("The token file", func() {
	const bob = "a-long-token-for-bob"
	var file TokenFile
	var world *World
	var client *Client
	BeforeEach(func(ctx SpecContext) {
		file = NewTokenFile(ctx, []string{editorToken, "--subject=ada", "--role=editor"},
			[]string{bob, "--subject=bob", "--role=author", "--scope=mcp"})
		world = NewWorld(file.verify)
		client = world.NewClient()
	})

	It("accepts the tokens in the file, with their roles", Label("roles"), func(ctx SpecContext) {
		Expect(world.Converse(ctx, stateless, client.Connect(ctx).Access).Ask(ctx, "tools/list", params{}).Tools()).
			To(ConsistOf(editorTools))
		Expect(world.Converse(ctx, stateless, client.ConnectAs(ctx, bob).Access).Ask(ctx, "tools/list", params{}).
			Tools()).To(ConsistOf(authorTools))
	})

	It("refuses other tokens", Label("B8"), func(ctx SpecContext) {
		for _, wrong := range []string{"demo_wrong", bob + "x", strings.Fields(file.Text())[2], string(file)} {
			Expect(client.Consent(ctx).Approve(ctx, wrong).StatusCode).To(Equal(http.StatusForbidden))
		}
	})

	It("limits a token to its scopes", Label("B10"), func(ctx SpecContext) {
		file.Save("# people\n")
		file.Save(file.Line(ctx, editorToken, "--scope=something:else"))
		Expect(client.Consent(ctx).Approve(ctx, editorToken).Target().Query().Get("error")).To(Equal("access_denied"))
	})

	It("ends the grants of a removed token at the next refresh", Label("J1"), func(ctx SpecContext) {
		ended, kept := client.Connect(ctx), client.ConnectAs(ctx, bob)
		lines := strings.SplitAfter(file.Text(), "\n")
		file.Save(lines[0] + lines[2])
		Expect(client.Token(ctx, client.Refresh(ended.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
		Expect(client.Token(ctx, client.Refresh(kept.Refresh)).StatusCode).To(Equal(http.StatusOK))
	})

	It("ends the grants of the last token in the file when it is removed", Label("J1"), func(ctx SpecContext) {
		ended := client.Connect(ctx)
		file.Save("# people\n")
		Expect(client.Token(ctx, client.Refresh(ended.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
		world.Restart()
		Expect(client.Consent(ctx).Approve(ctx, editorToken).StatusCode).To(Equal(http.StatusForbidden))
	})

	It("changes roles at the next refresh", Label("roles"), func(ctx SpecContext) {
		tokens := client.ConnectAs(ctx, bob)
		file.Save(strings.Replace(file.Text(), "role=author", "role=reader", 1))
		next := client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
		Expect(world.Converse(ctx, stateless, next.Access).Ask(ctx, "tools/list", params{}).Tools()).
			To(ConsistOf(readerTools))
	})

	DescribeTable("keeps the previous tokens and logs it while the file",
		func(ctx SpecContext, spoil func(), said string) {
			tokens := client.Connect(ctx)
			spoil()
			next := client.Token(ctx, client.Refresh(tokens.Refresh))
			Expect(next.StatusCode).To(Equal(http.StatusOK), next.Text)
			client.ConnectAs(ctx, bob)
			Expect(world.Log.String()).To(And(ContainSubstring("token file cannot be used"), ContainSubstring(said),
				ContainSubstring(string(file))))
		},
		Entry("has a syntax error", func() { file.Save(file.Text() + "a-new-token role=editor\n") }, "line 4"),
		Entry("has a line of an older version", func() {
			file.Save(file.Text() + "$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA role=editor\n")
		}, `line 4: it does not begin with \"sha256:\" and a whole hash: make the line again`),
		Entry("is missing", func() { Expect(os.Remove(string(file))).To(Succeed()) }, "no such file"),
	)

	It("prints no token", Label("B15"), func(ctx SpecContext) {
		client.Connect(ctx)
		client.Consent(ctx).Approve(ctx, "an-unknown-token")
		file.Save(file.Text() + "a-token-in-clear\n")
		client.Connect(ctx)
		for _, secret := range []string{editorToken, bob, "an-unknown-token", "a-token-in-clear"} {
			Expect(world.Log.String()).NotTo(ContainSubstring(secret))
		}
		Expect(file.Text()).NotTo(Or(ContainSubstring(editorToken), ContainSubstring(bob)))
	})

	It("issues no token of the demo site, because the demo site is not the verifier", func(ctx SpecContext) {
		Expect(client.Consent(ctx).Approve(ctx, world.TokenFor(ctx, "eve", "editor")).StatusCode).
			To(Equal(http.StatusForbidden))
	})
})

var _ = Describe("Hashing a token", func() {
	It("trims it like a pasted token, and prints a line with its person", Label("B7"), func(ctx SpecContext) {
		hashed := RunTyping(ctx, "  Bearer "+editorToken+" \r\n", "hash-token", "--subject", "ada", "--role", "editor",
			"--role", "author", "--scope", "mcp")
		Expect(hashed.Code).To(BeZero(), hashed.Err)
		Expect(hashed.Out).To(Equal("sha256:Jkfz2OwSOU0bJsGj8MX8OAesniWRHSPaMbJH7q2vI2Q " +
			"subject=ada role=editor role=author scope=mcp\n"))
		Expect(hashed.Err).To(BeEmpty())
	})

	It("makes a token with --new, prints it once and its line alone on standard output", func(ctx SpecContext) {
		made := Run(ctx, "hash-token", "--new", "--subject", "eve")
		Expect(made.Code).To(BeZero(), made.Err)
		token := strings.TrimSpace(made.Err[strings.LastIndex(made.Err, " "):])
		Expect(len(token)).To(BeNumerically(">=", 52), "32 bytes in base32")
		Expect(made.Out).To(And(HaveSuffix(" subject=eve\n"), Not(ContainSubstring(token))))
		Expect(Run(ctx, "hash-token", "--new").Err).NotTo(Equal(made.Err))
		file := NewTokenFile(ctx)
		file.Save(made.Out)
		NewWorld(file.verify).NewClient().ConnectAs(ctx, token)
	})

	It("names the line of a token that is already in the file, because duplicates are not allowed",
		func(ctx SpecContext) {
			file := NewTokenFile(ctx, []string{editorToken})
			refused := RunTyping(ctx, editorToken+"\n", "hash-token", "--token-file", string(file))
			Expect(refused.Code).To(Equal(1))
			Expect(refused.Out).To(BeEmpty())
			Expect(refused.Err).To(ContainSubstring("in line 2 of the token file"))
		})

	DescribeTable("refuses, without printing it,", func(ctx SpecContext, code int, typed, said string, args ...string) {
		refused := RunTyping(ctx, typed, append([]string{"hash-token"}, args...)...)
		Expect(refused.Code).To(Equal(code))
		Expect(refused.Out).To(BeEmpty())
		Expect(refused.Err).To(And(ContainSubstring(said), Not(ContainSubstring("s3cret"))))
	},
		Entry("a token on the command line", 2, "", "type it when asked, or pipe it in", "s3cret"),
		Entry("an empty token", 1, "\n", "the token is missing"),
		Entry("two lines", 1, "s3cret\ns3cret\n", "one token at a time"),
		Entry("control characters", 1, "s3\x00cret\n", "has control characters"),
		Entry("a token that is too long", 1, strings.Repeat("s3cret", 1000), "longer than 4096 bytes"),
		Entry("a token that can be guessed from its hash", 1, "19-characters-s3cret\n"[1:],
			"fewer than 20 characters, so it could be guessed from its hash: use a longer one, or run "+
				`"pasteport hash-token --new"`),
		Entry("a subject of two words", 1, "20-characters-s3cret\n", "it must be one word", "--subject",
			"Ada Lovelace"),
		Entry("a token file that is a folder", 1, "20-characters-s3cret\n", "is a directory", "--token-file",
			os.TempDir()),
	)
})
