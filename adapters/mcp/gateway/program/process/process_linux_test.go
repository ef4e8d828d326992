package process

import (
	"bytes"
	"fmt"
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
	It("has exactly the given environment and folder", Label("U23"), func() {
		p := shell("/bin/cat /proc/$$/environ; pwd")
		p.Env, p.Dir = []string{"PATH=/usr/bin:/bin", "KEY=a b\n'c'"}, "/usr"
		out, err := io.ReadAll(start(p))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(out)).To(Equal("PATH=/usr/bin:/bin\x00KEY=a b\n'c'\x00/usr\n"))
	})

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

	It("passes its streams, and reports its exit status", func() {
		var lines bytes.Buffer
		child, err := Start(shell("read line; echo got $line; echo one >&2; printf two >&2; exit 7"),
			func(line string) {
				fmt.Fprintf(&lines, "%s|", line)
			})
		Expect(err).NotTo(HaveOccurred())
		_, err = child.Write([]byte("this\n"))
		Expect(err).NotTo(HaveOccurred())
		Expect(io.ReadAll(child)).To(BeEquivalentTo("got this\n"))
		Eventually(child.Done()).WithTimeout(limit30).Should(BeClosed())
		Expect(child.Err()).To(MatchError("exit status 7"))
		Expect(lines.String()).To(Equal("one|two|"))
	})

	DescribeTable("reports how it ended:", func(script, reason string) {
		child := start(shell(script))
		Eventually(child.Done()).WithTimeout(limit30).Should(BeClosed())
		if reason == "" {
			Expect(child.Err()).To(Succeed())
			return
		}
		Expect(child.Err()).To(MatchError(ContainSubstring(reason)))
	},
		Entry("well", "true", ""),
		Entry("by a signal", "kill -9 $$", "signal: killed"),
	)

	It("reports a program that does not exist", func() {
		_, err := Start(Program{Path: "/does/not/exist", Dir: "/"}, func(string) {})
		Expect(err).To(MatchError(os.ErrNotExist))
	})

	It("gets SIGTERM, and SIGKILL if it ignores that", func() {
		for script, reason := range map[string]string{
			"trap 'exit 5' TERM; echo; while :; do sleep 0.01; done": "exit status 5",
			"trap '' TERM; echo; while :; do sleep 0.01; done":       "signal: killed",
		} {
			child := start(shell(script))
			_, err := child.Read(make([]byte, 1))
			Expect(err).NotTo(HaveOccurred())
			child.End()
			Eventually(child.Done()).WithTimeout(limit30).Should(BeClosed())
			Expect(child.Err()).To(MatchError(reason))
		}
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

	It("has its limits, and so has what it starts", Label("U25"), func() {
		p := shell("read start; (ulimit -H -d; ulimit -S -d; ulimit -H -t; ulimit -H -c)")
		p.Memory, p.CPUTime = 64<<20, time.Minute
		child := start(p)
		_, err := child.Write([]byte("\n"))
		Expect(err).NotTo(HaveOccurred())
		Expect(io.ReadAll(child)).To(BeEquivalentTo("65536\n65536\n60\n0\n"))
	})

	It("ends with its group when it exits", func() {
		child := start(shell("sleep 60 & echo $!; exit 3"))
		var descendant int
		_, err := fmt.Fscan(child, &descendant)
		Expect(err).NotTo(HaveOccurred())
		Eventually(child.Done()).WithTimeout(limit30).Should(BeClosed())
		Eventually(func() string {
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", descendant))
			_, state, _ := strings.Cut(string(status), ") ")
			return state
		}).WithTimeout(limit30).Should(Or(BeEmpty(), HavePrefix("Z")))
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
