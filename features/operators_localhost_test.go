package features_test

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
)

var _ = Describe("Listening on localhost in development", Label("configuration", "F8"), func() {
	It("publishes localhost with the configured port", func(ctx SpecContext) {
		workingFolder()
		Expect(Run(ctx, "config", "--dev", "--addr=localhost:9123").Out).
			To(And(ContainSubstring("issuer: http://localhost:9123 "),
				ContainSubstring("resource: http://localhost:9123/mcp ")))
		Expect(Run(ctx, "config", "--dev", "--addr=127.0.0.1:9123").Out).
			To(ContainSubstring("issuer: http://127.0.0.1:9123 "))
	})

	It("publishes localhost with the port that it got", func(ctx SpecContext) {
		clients, dir := NewClientSite(), GinkgoT().TempDir()
		run := BuildBinary().Run([]string{"SSL_CERT_FILE=" + clients.Certificate()},
			"serve", "--demo-token", editorToken, "--dev", "--addr", "localhost:0", "--admin-addr", "off",
			"--data", dir)
		Eventually(run.Out).WithTimeout(patience).
			Should(gbytes.Say(
				`serving http://localhost:\d+ on .*\nnext: connect an MCP client to http://localhost:\d+/mcp\n`))
		world := &World{
			Issuer:  issuerIn(run),
			Dir:     dir,
			Clients: clients,
			Token:   editorToken,
		}
		Expect(world.Issuer).To(HavePrefix("http://localhost:"))
		Expect(world.Call(ctx, world.NewClient().Connect(ctx).Access).StatusCode).To(Equal(http.StatusOK))
	})

	It("publishes localhost in the demo too", func(SpecContext) {
		run := BuildBinary().Run(nil, "demo", "--once", "--addr", "localhost:0", "--data", GinkgoT().TempDir())
		Eventually(run.Out).WithTimeout(patience).Should(gbytes.Say(`http://localhost:\d+`))
	}, SpecTimeout(time.Minute))

	It("keeps the settings of a service away from the demo", func(SpecContext) {
		service := []string{"PASTEPORT_DATABASE=postgres://127.0.0.1:1/none",
			"PASTEPORT_UPSTREAM=https://mcp.example/mcp", "PASTEPORT_BIND_TOOLS=true"}
		run := BuildBinary().Run(service, "demo", "--once", "--addr", "127.0.0.1:0", "--data", GinkgoT().TempDir())
		Eventually(run).WithTimeout(patience).Should(gexec.Exit(0))
	}, SpecTimeout(time.Minute))
})
