package demo_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/cli"
	"github.com/pasteport/pasteport/features/suite"
)

func TestDemo(t *testing.T) {
	suite.Run(t, "Demo")
}

var (
	steps = regexp.MustCompile(`(?m)^(\d+)\. .+\n   ok, \d+\.\d ms: .+$`)
	made  = regexp.MustCompile(`create_article wrote "([^"]+)"`)
	token = regexp.MustCompile(`(?m)^demo token: (\S+)$`)
)

// found returns the first group of the match, or the whole match if the pattern has no group.
func found(pattern *regexp.Regexp, text []byte) string {
	GinkgoHelper()
	match := pattern.FindSubmatch(text)
	Expect(match).NotTo(BeNil(), "%s in\n%s", pattern, text)
	return string(match[len(match)-1])
}

func run(ctx context.Context, args ...string) (code int, out, errOut string) {
	var o, e bytes.Buffer
	code = cli.Run(ctx, append([]string{"demo"}, args...), io.NopCloser(&bytes.Buffer{}), &o, &e)
	return code, o.String(), e.String()
}

func numbers(out string) (all []string) {
	for _, match := range steps.FindAllStringSubmatch(out, -1) {
		all = append(all, match[1])
	}
	return all
}

// tripwire calls trip when the word is written.
type tripwire struct {
	bytes.Buffer
	word string
	trip func()
}

func (t *tripwire) Write(text []byte) (int, error) {
	if bytes.HasPrefix(text, []byte(t.word)) {
		t.trip()
	}
	return t.Buffer.Write(text)
}

var nine = []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}

var _ = Describe("The steps of the demo", func() {
	var dir string

	BeforeEach(func() {
		dir = filepath.Join(GinkgoT().TempDir(), "data")
		GinkgoT().Setenv("PASTEPORT_DEMO_TOKEN", "")
	})

	once := func(ctx context.Context, more ...string) (int, string, string) {
		return run(ctx, append([]string{"--once", "--addr", "127.0.0.1:0", "--data", dir}, more...)...)
	}

	It("run in order and create an article, in files whose folder and names they print, without secrets or colours",
		func(ctx SpecContext) {
			code, out, errOut := once(ctx)
			Expect(errOut).To(BeEmpty())
			Expect(code).To(Equal(0))
			Expect(numbers(out)).To(Equal(nine), out)
			Expect(out).To(ContainSubstring(dir + ": site.json, oauth.db, demo.log"))
			Expect(filepath.Join(dir, "oauth.db")).To(BeARegularFile())
			site, err := os.ReadFile(filepath.Join(dir, "site.json"))
			Expect(err).NotTo(HaveOccurred())
			Expect(string(site)).To(ContainSubstring(`"slug": "` + found(made, []byte(out)) + `"`))
			log, err := os.ReadFile(filepath.Join(dir, "demo.log"))
			Expect(err).NotTo(HaveOccurred())
			Expect(string(log)).To(ContainSubstring("path=/oauth/token status=200"))
			Expect(out + string(log)).NotTo(MatchRegexp(`pp[arc]_[\w-]{20,}|\x1b`))
			Expect(string(log)).NotTo(ContainSubstring(found(token, []byte(out))))
		})

	It("use the token of PASTEPORT_DEMO_TOKEN", func(ctx SpecContext) {
		GinkgoT().Setenv("PASTEPORT_DEMO_TOKEN", "the-reader-s-own")
		code, out, _ := once(ctx)
		Expect(code).To(Equal(0))
		Expect(found(token, []byte(out))).To(Equal("the-reader-s-own"))
	})

	It("report the failed step and the reason", func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var errOut bytes.Buffer
		out := &tripwire{word: "5. ", trip: cancel}
		code := cli.Run(ctx, []string{"demo", "--addr", "127.0.0.1:0", "--data", dir}, io.NopCloser(&bytes.Buffer{}),
			out, &errOut)
		Expect(code).To(Equal(1))
		Expect(out.String()).To(MatchRegexp(`(?m)^6\. .+\n   failed, .+\n\z`))
		Expect(errOut.String()).To(And(ContainSubstring("step 6 of 9 failed"), ContainSubstring("context canceled")))
	})

	It("do not start and create no files when the port is in use", func(ctx SpecContext) {
		taken, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		defer taken.Close()
		code, _, errOut := once(ctx, "--addr", taken.Addr().String())
		Expect(code).To(Equal(1))
		Expect(errOut).To(And(ContainSubstring(taken.Addr().String()), ContainSubstring("choose another with --addr")))
		Expect(dir).NotTo(BeAnExistingFile())
	})
})
