package process

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
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
		Entry("by a signal", "kill -9 $$", "ended by signal 9"),
	)

	It("reports a program that does not exist", func() {
		var said bytes.Buffer
		child, err := Start(Program{Path: "/does/not/exist", Dir: "/"}, func(line string) { said.WriteString(line) })
		Expect(err).NotTo(HaveOccurred())
		Eventually(child.Done()).WithTimeout(limit30).Should(BeClosed())
		Expect(child.Err()).To(MatchError("exit status 127"))
		Expect(said.String()).To(ContainSubstring("the program cannot be started"))
	})

	It("ends at the request of a signal to its supervisor, as from a service manager", func() {
		child := start(shell("echo $PPID; while :; do sleep 1; done"))
		line := make([]byte, 20)
		n, err := child.Read(line)
		Expect(err).NotTo(HaveOccurred())
		var supervisor int
		_, err = fmt.Sscan(string(line[:n]), &supervisor)
		Expect(err).NotTo(HaveOccurred())
		Expect(supervisor).NotTo(Equal(os.Getpid()))
		Expect(syscall.Kill(supervisor, syscall.SIGTERM)).To(Succeed())
		Eventually(child.Done()).WithTimeout(limit30).Should(BeClosed())
	})

	It("has a supervisor with the environment of the host, for its init functions", func() {
		GinkgoT().Setenv("OF_THE_HOST", "yes")
		p := shell("tr '\\0' '\\n' </proc/$PPID/environ; echo program; tr '\\0' '\\n' </proc/$$/environ")
		p.Env = []string{"PATH=/usr/bin:/bin"}
		out, err := io.ReadAll(start(p))
		Expect(err).NotTo(HaveOccurred())
		supervisor, program, _ := strings.Cut(string(out), "\nprogram\n")
		Expect(supervisor).To(ContainSubstring("OF_THE_HOST=yes"))
		Expect(program).To(Equal("PATH=/usr/bin:/bin\n"))
	})

	It("reports a limit that cannot be set", Label("U25"), func() {
		var lines bytes.Buffer
		p := shell("true")
		p.Memory = math.MaxInt64
		Expect(limitMemory(math.MaxInt32, p)).
			To(And(MatchError(ContainSubstring("limiting the memory of the program")), MatchError(syscall.ESRCH)))
		child, err := Start(p, func(line string) { lines.WriteString(line) })
		Expect(err).NotTo(HaveOccurred())
		Eventually(child.Done()).WithTimeout(limit30).Should(BeClosed())
		Expect(lines.String()).To(BeEmpty(), "it can be set")
	})

	It("has its limits from its first instruction on, and so has what it starts", Label("U25"), func() {
		p := shell("(ulimit -H -d; ulimit -S -d; ulimit -H -t; ulimit -H -c)")
		p.Memory, p.CPUTime = 64<<20, time.Minute
		Expect(io.ReadAll(start(p))).To(BeEquivalentTo("65536\n65536\n60\n0\n"))
	})

	It("ends with its group when it kills its supervisor", func() {
		child := start(shell("sleep 60 & echo $! $PPID; kill -9 $PPID; sleep 60"))
		var descendant, supervisor int
		_, err := fmt.Fscan(child, &descendant, &supervisor)
		Expect(err).NotTo(HaveOccurred())
		Eventually(child.Done()).WithTimeout(limit30).Should(BeClosed())
		Eventually(func() string {
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", descendant))
			_, state, _ := strings.Cut(string(status), ") ")
			return state
		}).WithTimeout(limit30).Should(Or(BeEmpty(), HavePrefix("Z")))
	})

	DescribeTable("is not started without an order", func(name string) {
		self, err := executable()
		Expect(err).NotTo(HaveOccurred())
		stray := &exec.Cmd{Path: self, Args: []string{name}}
		Expect(stray.Run()).NotTo(Succeed())
		Expect(stray.ProcessState.ExitCode()).To(Equal(failedStart))
	}, Entry("of a supervisor", supervisorName), Entry("of a starter", starterName))
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
