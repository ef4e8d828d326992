package service

import (
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
)

var _ = Describe("The command line of a program", Label("U23", "configuration"), func() {
	DescribeTable("is split without a shell:", func(line string, env map[string]string, words ...string) {
		p, err := parseProgram(line)
		Expect(err).NotTo(HaveOccurred())
		Expect(append([]string{p.Command}, p.Args...)).To(Equal(words))
		Expect(maps.Collect(maps.All(p.Env))).To(Equal(env))
	},
		Entry("at spaces", " npx  -y pkg ", map[string]string{}, "npx", "-y", "pkg"),
		Entry("outside of quotes", `sh -c 'a "b" $HOME' "it's" ''`, map[string]string{}, "sh", "-c", `a "b" $HOME`,
			"it's", ""),
		Entry("with variables before the command", `K={token} A='b c' cmd C=d`,
			map[string]string{"K": "{token}", "A": "b c"}, "cmd", "C=d"),
		Entry("with an empty variable", `K= cmd`, map[string]string{"K": ""}, "cmd"),
		Entry("with a path that has an equals sign", `/opt/a=b/cmd`, map[string]string{}, "/opt/a=b/cmd"),
		Entry("with a backslash, which has no meaning", `a\ b`, map[string]string{}, `a\`, "b"),
	)
})

// FuzzProgram reads what it has written.
func FuzzProgram(f *testing.F) {
	f.Fuzz(func(t *testing.T, line string) {
		p, err := parseProgram(line)
		if err != nil {
			return
		}
		again, err := parseProgram(formatProgram(p)[len(programPrefix):])
		if err != nil || !isSame(p, again) {
			t.Fatalf("%q is %q, then %q (%v)", line, p, again, err)
		}
	})
}

func isSame(a, b bootstrap.Upstream) bool {
	return a.Command == b.Command && slices.Equal(a.Args, b.Args) && maps.Equal(a.Env, b.Env)
}
