package features_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// programWord makes the test binary an MCP server over stdio.
const programWord = "mcp-server-over-stdio"

func init() {
	if len(os.Args) > 1 && os.Args[1] == programWord {
		os.Exit(runProgram(os.Args[2:]))
	}
}

// stdioProgram is the test binary as an MCP server.
func stdioProgram(words ...string) bootstrap.Upstream {
	GinkgoHelper()
	return bootstrap.Upstream{Command: must(os.Executable()), Args: append([]string{programWord}, words...),
		Env: map[string]string{"API_KEY": "{token}", "PATH": "/usr/bin:/bin"}}
}

// longestRun ends a program that a mutation of the gateway leaves behind.
const longestRun = 2 * time.Minute

// runProgram serves MCP until the end of its input. A word names something that it does at its
// start.
func runProgram(words []string) int {
	run, end := context.WithTimeout(context.Background(), longestRun)
	defer end()
	output, description := io.WriteCloser(os.Stdout), ""
	for _, word := range words {
		switch word {
		case "banner":
			fmt.Print("\ufeffWelcome!\n{not json}\n[]\nthe key is " + os.Getenv("API_KEY") + "\n\ufeff")
		case "exit":
			return 3
		case "usage":
			fmt.Println("usage: program [flags]\n  --key " + os.Getenv("API_KEY"))
			return 2
		case "pretty": // reads its input, and answers in several lines
			_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
			fmt.Println("{\n  \"jsonrpc\": \"2.0\"\n}")
			_, _ = io.Copy(io.Discard, os.Stdin)
			return 0
		case "silent": // reads its input and answers nothing
			_, _ = io.Copy(io.Discard, os.Stdin)
			return 0
		case "text-ids": // answers numbers with text, after an answer to no call and one with the key
			fmt.Printf(`{"jsonrpc":"2.0","id":99,"result":{}}`+"\n"+`{"jsonrpc":"2.0","id":"98 %s","result":{}}`+"\n",
				os.Getenv("API_KEY"))
			output = textIDs{os.Stdout}
		case "stubborn": // ignores the end of its input and SIGTERM
			ignoreTermination()
			defer func() { <-run.Done() }()
		default: // a file with the description of the tools
			text, err := os.ReadFile(word)
			if err != nil {
				return 1
			}
			description = string(text)
		}
	}
	if err := newProgramServer(description).Run(run, &mcp.IOTransport{Reader: os.Stdin, Writer: output}); err != nil {
		return 1
	}
	return 0
}

// textIDs writes the ids of messages as text.
type textIDs struct{ *os.File }

var numericID = regexp.MustCompile(`^\{"jsonrpc":"2.0","id":(\d+)`)

func (t textIDs) Write(p []byte) (int, error) {
	if _, err := t.File.Write(numericID.ReplaceAll(p, []byte(`{"jsonrpc":"2.0","id":"$1"`))); err != nil {
		return 0, err
	}
	return len(p), nil
}

type programInput struct {
	Text string `json:"text,omitempty"`
	Size int    `json:"size,omitempty"`
}

func newProgramServer(description string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "program", Version: "1"}, nil)
	for name, tool := range map[string]func(context.Context, *mcp.CallToolRequest, programInput) (string, error){
		"environ": func(context.Context, *mcp.CallToolRequest, programInput) (string, error) {
			own, err := os.ReadFile("/proc/self/environ")
			return string(bytes.ReplaceAll(own, []byte{0}, []byte{'\n'})), err
		},
		"shout": func(_ context.Context, _ *mcp.CallToolRequest, in programInput) (string, error) {
			return strings.ToUpper(in.Text), nil
		},
		"pid": func(context.Context, *mcp.CallToolRequest, programInput) (string, error) {
			return strconv.Itoa(os.Getpid()), nil
		},
		"folder": func(context.Context, *mcp.CallToolRequest, programInput) (string, error) { return os.Getwd() },
		"limits": func(context.Context, *mcp.CallToolRequest, programInput) (string, error) {
			return limitsOfProcess()
		},
		"spawn": spawn,
		"exit": func(context.Context, *mcp.CallToolRequest, programInput) (string, error) {
			os.Exit(3)
			return "", nil
		},
		"big": func(_ context.Context, _ *mcp.CallToolRequest, in programInput) (string, error) {
			return strings.Repeat("x", in.Size), nil
		},
		"endless": func(context.Context, *mcp.CallToolRequest, programInput) (string, error) {
			return "", writeEndless()
		},
		"chatter": func(ctx context.Context, r *mcp.CallToolRequest, in programInput) (string, error) {
			for range in.Size {
				progress := &mcp.ProgressNotificationParams{ProgressToken: "of no call"}
				if err := r.Session.NotifyProgress(ctx, progress); err != nil {
					return "", err
				}
			}
			return "", nil
		},
		"complain": complain,
		"steps":    stepThrough,
		"ask":      askPerson,
		"wait": func(ctx context.Context, _ *mcp.CallToolRequest, _ programInput) (string, error) {
			<-ctx.Done()
			return "cancelled", os.WriteFile(os.Getenv("MARK"), []byte("cancelled"), 0o600)
		},
	} {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: description},
			func(ctx context.Context, r *mcp.CallToolRequest, in programInput) (*mcp.CallToolResult, any, error) {
				text, err := tool(ctx, r, in)
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, err
			})
	}
	return s
}

// spawn starts two processes in the group of the program, and returns their ids. They end soon when
// a mutation does not end them.
func spawn(context.Context, *mcp.CallToolRequest, programInput) (string, error) {
	var pids []int
	for range 2 {
		child := exec.Command("sleep", "120")
		if err := child.Start(); err != nil {
			return "", err
		}
		pids = append(pids, child.Process.Pid)
	}
	text, err := json.Marshal(pids)
	return string(text), err
}

// complain writes a line to stderr until size bytes are written.
func complain(_ context.Context, _ *mcp.CallToolRequest, in programInput) (string, error) {
	written := 0
	for {
		n, err := fmt.Fprintln(os.Stderr, in.Text)
		if written += n; err != nil || written >= in.Size {
			return strconv.Itoa(written), err
		}
	}
}

func writeEndless() error {
	block := bytes.Repeat([]byte("x"), 1<<20)
	for {
		if _, err := os.Stdout.Write(block); err != nil {
			return err
		}
	}
}

func stepThrough(ctx context.Context, r *mcp.CallToolRequest, _ programInput) (string, error) {
	for step := range 3 {
		if err := r.Session.NotifyProgress(ctx,
			&mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(),
				Progress: float64(step + 1)}); err != nil {
			return "", err
		}
	}
	return "done", nil
}

func askPerson(ctx context.Context, r *mcp.CallToolRequest, _ programInput) (string, error) {
	answer, err := r.Session.Elicit(ctx,
		&mcp.ElicitParams{Message: "Sure?", RequestedSchema: map[string]any{"type": "object"}})
	if err != nil {
		return "", err
	}
	return answer.Action, nil
}

func NewProgramGateway(to bootstrap.Upstream, tokenFile string, adjust ...func(*service.Config)) *World {
	GinkgoHelper()
	return NewGateway("", append([]func(*service.Config){toProgram(to, tokenFile)}, adjust...)...)
}

func toProgram(to bootstrap.Upstream, tokenFile string) func(*service.Config) {
	return func(c *service.Config) {
		c.Gateway.Upstreams = []service.Upstream{{Upstream: to}}
		c.Verification.Verifier, c.Verification.TokenFile = service.VerifierFile, tokenFile
	}
}

// peopleFile returns a token file of people and their tokens; a person with several tokens is in
// several maps.
func peopleFile(ctx context.Context, people ...map[string]string) string {
	GinkgoHelper()
	var lines strings.Builder
	for _, some := range people {
		for person, token := range some {
			ran := RunTyping(ctx, token+"\n", "hash-token", "--subject", person)
			Expect(ran.Code).To(Equal(0), ran.Err)
			lines.WriteString(ran.Out)
		}
	}
	file := filepath.Join(GinkgoT().TempDir(), "tokens")
	Expect(os.WriteFile(file, []byte(lines.String()), 0o600)).To(Succeed())
	return file
}

// isRunning reports whether a process exists and is not a zombie.
func isRunning(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	_, after, _ := strings.Cut(string(status), ") ")
	return !strings.HasPrefix(after, "Z")
}

// countProcesses returns how many processes of this computer have the text in their environment or
// arguments.
func countProcesses(text string) (count int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, one := range all {
		environment, _ := os.ReadFile(filepath.Join(one, "environ"))
		arguments, _ := os.ReadFile(filepath.Join(one, "cmdline"))
		if bytes.Contains(environment, []byte(text)) || bytes.Contains(arguments, []byte(text)) {
			count++
		}
	}
	return count
}

func ignoreTermination() { signal.Ignore(syscall.SIGTERM) }

// limitsOfProcess returns the limits on core files, data and processor time.
func limitsOfProcess() (string, error) {
	text := ""
	for _, resource := range []int{syscall.RLIMIT_CORE, syscall.RLIMIT_DATA, syscall.RLIMIT_CPU} {
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(resource, &limit); err != nil {
			return "", err
		}
		text += fmt.Sprintf("%d ", limit.Max)
	}
	return text, nil
}
