package features_test

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Listing the well-known clients", Label("T4", "CIMD"), func() {
	BeforeEach(func() { workingFolder() })

	It("says which clients the settings admit, and whose documents cannot be fetched", func(ctx SpecContext) {
		write("pasteport.yaml", "metadata-proxy: http://127.0.0.1:1\nallow-clients: [Claude.ai]\n"+
			"self-registration: off\n")
		ran := Run(ctx, "clients", "known")
		Expect(ran.Code).To(Equal(1))
		Expect(ran.Err).To(And(ContainSubstring("client-documents"), ContainSubstring("metadata-proxy")))
		Expect(ran.Out).To(And(
			MatchRegexp(`(?m)^Claude Code +yes +fetch the client metadata document: `),
			MatchRegexp(`(?m)^VS Code +no: allow-clients +`),
			MatchRegexp(`(?m)^Cursor +no: self-registration +registers itself$`)))
	})

	It("admits all clients without a list", func(ctx SpecContext) {
		ran := Run(ctx, "clients", "known", "--metadata-proxy", "http://127.0.0.1:1")
		Expect(ran.Out).To(And(ContainSubstring("ChatGPT"), ContainSubstring("mcp-remote"),
			Not(ContainSubstring("no: "))))
	})

	It("is recommended by the trace when a document cannot be fetched", Label("trace"), func(ctx SpecContext) {
		operated := Operate()
		for rule, answer := range map[string]http.HandlerFunc{
			"C41": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			"C42": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		} {
			client := operated.NewClient()
			operated.Clients.Serve(client.path(), answer)
			client.AskFor(ctx, client.Request())
			Eventually(func() []Traced { return operated.Traces(ctx) }).WithContext(ctx).WithTimeout(patience).
				Should(ContainElement(And(HaveField("Client", client.ID),
					HaveField("Hint", ContainSubstring("pasteport clients known")))), rule)
		}
	})
})
