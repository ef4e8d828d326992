package process

import (
	"bytes"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/suite"
)

func TestProcess(t *testing.T) {
	suite.Run(t, "Running a program")
}

// shell returns a program that runs a script.
func shell(script string) Program {
	GinkgoHelper()
	path, err := exec.LookPath("sh")
	Expect(err).NotTo(HaveOccurred())
	return Program{Path: path, Args: []string{"-c", script}, Dir: "/"}
}

func start(p Program) *Process {
	GinkgoHelper()
	child, err := Start(p, func(string) {})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		child.End()
		Eventually(child.Done()).WithTimeout(limit30).Should(BeClosed())
		Expect(child.Close()).To(Succeed())
	})
	return child
}

const limit30 = 30 * time.Second

var _ = Describe("A process", Label("U24"), func() {
	It("gets no file besides its standard streams", Label("U23"), func() {
		inherited, err := os.Open("/dev/null")
		Expect(err).NotTo(HaveOccurred())
		defer inherited.Close()
		// Not closed on exec, like files from a service manager.
		_, _, errno := syscall.Syscall(syscall.SYS_FCNTL, inherited.Fd(), syscall.F_SETFD, 0)
		Expect(errno).To(BeZero())
		path, err := exec.LookPath("ls")
		Expect(err).NotTo(HaveOccurred())
		Expect(io.ReadAll(start(Program{Path: path, Args: []string{"/proc/self/fd"}, Dir: "/"}))).
			To(BeEquivalentTo("0\n1\n2\n3\n"), "the last is that of ls")
	})

	It("does not end with the thread of its caller", func() {
		started := make(chan *Process)
		go func() {
			defer GinkgoRecover()
			runtime.LockOSThread() // so that the thread ends with this function
			started <- start(shell("sleep 60"))
		}()
		Consistently((<-started).Done(), "200ms").ShouldNot(BeClosed())
	})

	It("reports a limit that cannot be set", Label("U25"), func() {
		Expect(limit(math.MaxInt32, Program{Memory: 1})).To(And(MatchError(syscall.ESRCH),
			MatchError(ContainSubstring("limiting the memory of the program"))))
		var lines bytes.Buffer
		p := shell("true")
		p.Memory = math.MaxInt64
		child, err := Start(p, func(line string) { lines.WriteString(line) })
		Expect(err).NotTo(HaveOccurred())
		Eventually(child.Done()).WithTimeout(limit30).Should(BeClosed())
		Expect(lines.String()).To(BeEmpty(), "it can be set")
	})
})

var _ = Describe("The lines of stderr", Label("U25"), func() {
	It("are cut, and the rest of a long line is skipped", func() {
		var lines []string
		readLines(strings.NewReader("a\r\n"+strings.Repeat("b", 3*lineWindow)+"\n\nlast"), func(line string) {
			lines = append(lines, line)
		})
		Expect(lines).To(HaveExactElements("a", HaveLen(lineWindow), "", "last"))
	})
})
