package features_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// callUntilKilled calls a tool from some goroutines until the service was killed after a number of
// answers, which it returns.
func (c *Crashing) callUntilKilled(ctx context.Context, access string, enough int64) int64 {
	var answers atomic.Int64
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for {
				r, _ := http.NewRequestWithContext(ctx, http.MethodPost, c.MCP(), strings.NewReader(listTools))
				for name, value := range map[string]string{
					"Content-Type":         "application/json",
					"Accept":               "application/json, text/event-stream",
					"MCP-Protocol-Version": stateless,
					"Mcp-Method":           "tools/list",
					"Authorization":        "Bearer " + access,
				} {
					r.Header.Set(name, value)
				}
				if answer, whole := send(r); !whole || answer.StatusCode != http.StatusOK {
					return
				}
				if answers.Add(1) == enough {
					c.run.Kill()
				}
			}
		})
	}
	load.Wait()
	c.run.Kill().Wait(patience)
	noRedirects.CloseIdleConnections()
	return answers.Load()
}

var _ = Describe("Audit of calls of a running service", Label("audit", "V3", "V4"), func() {
	var path string
	var service *Crashing
	BeforeEach(func() {
		path = filepath.Join(GinkgoT().TempDir(), "calls.jsonl")
		service = NewCrashing(BuildBinary())
	})
	audited := func() []string { return []string{"--audit-file", path} }
	files := func() []string {
		return must(filepath.Glob(path + "*"))
	}

	It("has every answered call, in a chain that verifies, after kills and renames under load",
		Label("long", "crash"), func(ctx SpecContext) {
			service.Start(audited()...)
			access := service.client.Connect(ctx).Access
			answers := int64(0)
			for round := range 5 {
				if round > 0 {
					service.Start(audited()...)
				}
				Expect(os.Rename(path, fmt.Sprint(path, ".", round))).To(Succeed())
				service.run.Signal(syscall.SIGHUP)
				answers += service.callUntilKilled(ctx, access, 60+int64(round))
				ran := Run(ctx, append([]string{"audit", "verify"}, files()...)...)
				Expect(ran.Code).To(Equal(0), ran.Out+ran.Err)
			}
			lines := 0
			for _, name := range files() {
				lines += len(auditLines(name))
			}
			Expect(answers).To(BeNumerically(">=", 300))
			Expect(lines).To(BeNumerically(">=", answers))
			Expect(len(files())).To(BeNumerically(">=", 2))

			text := must(os.ReadFile(path))
			Expect(os.WriteFile(path, []byte(strings.Replace(string(text), "tools/list", "tools/last", 1)),
				0o600)).To(Succeed())
			ran := Run(ctx, append([]string{"audit", "verify"}, files()...)...)
			Expect(ran.Code).To(Equal(1))
			Expect(ran.Out).To(MatchRegexp(`calls\.jsonl:\d+: it was changed`))
		}, SpecTimeout(5*time.Minute))

	It("goes on after SIGHUP without a file", func(ctx SpecContext) {
		service.Start()
		access := service.client.Connect(ctx).Access
		service.run.Signal(syscall.SIGHUP)
		Expect(service.Call(ctx, access).StatusCode).To(Equal(http.StatusOK))
		service.run.Signal(syscall.SIGTERM)
		Expect(service.run.Wait(patience).ExitCode()).To(Equal(0))
	})

	It("is not ready and answers no call while the disk is full", Label("V5"), func(ctx SpecContext) {
		line := `{"event":"file","text":"` + strings.Repeat("a", confinedSize-700) + `","seq":1,"prev":""`
		line += fmt.Sprintf(`,"hash":"%x"}`, sha256.Sum256([]byte(line)))
		Expect(os.WriteFile(path, []byte(line+"\n"), 0o600)).To(Succeed()) // one call has no room behind it
		service.binary = service.binary.Confine()
		service.Start(audited()...)
		access := service.client.Connect(ctx).Access
		Eventually(func() int { return service.Call(ctx, access).StatusCode }).WithContext(ctx).
			WithTimeout(patience).Should(Equal(http.StatusServiceUnavailable))
		Expect(service.Call(ctx, access).StatusCode).To(Equal(http.StatusServiceUnavailable))
		Expect(service.run.Out.Contents()).NotTo(ContainSubstring("panic"))
		Expect(service.run.Kill().Wait(patience)).NotTo(BeNil())
		Expect(Run(ctx, "audit", "verify", path).Code).To(Equal(0))
	}, SpecTimeout(5*time.Minute))

	It("goes on in a new file after logrotate has renamed the file and sent SIGHUP", func(ctx SpecContext) {
		service.Start(audited()...)
		access := service.client.Connect(ctx).Access
		Expect(service.Call(ctx, access).StatusCode).To(Equal(http.StatusOK))
		Expect(os.Rename(path, path+".1")).To(Succeed())
		Expect(service.Call(ctx, access).StatusCode).To(Equal(http.StatusOK))
		service.run.Signal(syscall.SIGHUP)
		Eventually(path).WithTimeout(patience).Should(BeAnExistingFile())
		Expect(service.Call(ctx, access).StatusCode).To(Equal(http.StatusOK))
		Expect(service.run.Terminate().Wait(patience).ExitCode()).To(Equal(0))
		Expect(auditLines(path + ".1")).To(HaveLen(2))
		Expect(auditLines(path)).To(HaveLen(1))
		Expect(Run(ctx, "audit", "verify", path, path+".1").Code).To(Equal(0))
		Expect(Run(ctx, "audit", "verify", "--expect", strings.Repeat("0", 64), path, path+".1").Code).To(Equal(1))
	}, SpecTimeout(5*time.Minute))
})
