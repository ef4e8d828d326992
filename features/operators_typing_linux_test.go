package features_test

import (
	"context"
	"os"

	"github.com/creack/pty"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"golang.org/x/sys/unix"

	"github.com/pasteport/pasteport/bootstrap/cli"
)

// showsTyping reports whether a terminal echoes input.
func showsTyping(terminal *os.File) bool {
	GinkgoHelper()
	return must(unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)).Lflag&unix.ECHO != 0
}

var _ = Describe("Typing a token at a terminal", func() {
	var person, terminal *os.File
	var out, shown *gbytes.Buffer
	var ended chan int
	BeforeEach(func() {
		var err error
		person, terminal, err = pty.Open()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(person.Close)
		DeferCleanup(terminal.Close)
		out, shown, ended = gbytes.NewBuffer(), gbytes.BufferReader(person), make(chan int, 1)
	})
	asks := func(ctx context.Context) {
		GinkgoHelper()
		go func() {
			ended <- cli.Run(ctx, []string{"hash-token", "--subject", "ada"}, terminal, out, terminal)
		}()
		Eventually(func() bool { return showsTyping(terminal) }).WithTimeout(patience).Should(BeFalse())
		Eventually(shown).WithTimeout(patience).Should(gbytes.Say("Token .it is not shown.: "))
	}

	It("does not echo it, and prints its line", func(ctx SpecContext) {
		asks(ctx)
		Expect(person.WriteString("site_with-a-secret-word\n")).Error().NotTo(HaveOccurred())
		Eventually(ended).WithTimeout(patience).Should(Receive(Equal(0)))
		Expect(out).To(gbytes.Say("sha256:.*ada"))
		Eventually(shown).WithTimeout(patience).Should(gbytes.Say("\r\n"))
		Expect(string(shown.Contents())).NotTo(ContainSubstring("secret-word"))
		Expect(showsTyping(terminal)).To(BeTrue())
	})

	It("restores the terminal after Ctrl-C", func(ctx SpecContext) {
		pressed, press := context.WithCancel(ctx)
		asks(pressed)
		press()
		Eventually(ended).WithTimeout(patience).Should(Receive(Not(BeZero())))
		Expect(showsTyping(terminal)).To(BeTrue())
	})
})
