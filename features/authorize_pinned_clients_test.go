package features_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// document returns the document of the client, with these redirect URIs.
func (c *Client) document(redirects string) string {
	return `{"client_id":"` + c.ID + `","client_name":"Pinned Client","redirect_uris":["` + redirects + `"]}`
}

var _ = Describe("Pinning documents of clients", Label("CIMD", "C59", "configuration"), func() {
	var folder string
	var world *World
	var client *Client
	BeforeEach(func() {
		folder = GinkgoT().TempDir()
		world = NewWorld(func(config *service.Config) { config.ClientDocuments = folder })
		client = world.NewClient()
		world.Clients.Serve(client.path(), challenged)
	})
	pin := func(name, document string) {
		GinkgoHelper()
		Expect(os.WriteFile(filepath.Join(folder, name), []byte(document), 0o600)).To(Succeed())
	}
	ask := func(ctx context.Context) Response { return client.AskFor(ctx, client.Request()) }

	It("lets an app connect whose document cannot be fetched, without a fetch", func(ctx SpecContext) {
		pin("client.json", client.document(client.Redirect))
		Expect(ask(ctx).Text).To(And(ContainSubstring("Pinned Client"), Not(ContainSubstring("could not check"))))
		client.Connect(ctx)
		Expect(world.Clients.Fetches()).To(BeZero())
		Expect(world.Rows(ctx)["client_documents"]).To(BeEmpty())
	})

	It("serves the form with which ChatGPT reconnects, unless that has a document of its own",
		Label("C23"), func(ctx SpecContext) {
			pin("client.json", client.document(client.Redirect))
			client.ID += "?token_endpoint_auth_method=none"
			tokens := client.Connect(ctx)
			Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
			pin("own.json", strings.Replace(client.document(client.Redirect), "Pinned Client", "Its own", 1))
			Expect(ask(ctx).Text).To(ContainSubstring("Its own"))
			client.ID += "&x=1"
			Expect(ask(ctx).StatusCode).To(Equal(http.StatusBadGateway))
			Expect(world.Clients.Fetches()).To(BeEquivalentTo(1))
		})

	It("follows the files while the service runs", func(ctx SpecContext) {
		Expect(ask(ctx).StatusCode).To(Equal(http.StatusBadGateway))
		pin("client.json", client.document(client.Redirect))
		Expect(ask(ctx).StatusCode).To(Equal(http.StatusOK))
		pin("client.json", client.document("https://client.example/elsewhere"))
		Expect(ask(ctx)).To(BeASafePage(http.StatusBadRequest, "invalid_request"))
		pin("client.json", client.document(client.Redirect))
		Expect(os.Remove(filepath.Join(folder, "client.json"))).To(Succeed())
		Expect(ask(ctx).StatusCode).To(Equal(http.StatusBadGateway))
	})

	It("keeps the documents while a file is not valid, and logs the mistake once", func(ctx SpecContext) {
		pin("client.json", client.document(client.Redirect))
		Expect(ask(ctx).StatusCode).To(Equal(http.StatusOK))
		pin("other.json", `{"client_id":`)
		for range 3 {
			Expect(ask(ctx).StatusCode).To(Equal(http.StatusOK))
		}
		Expect(linesWith(world.Log.String(), "pinned client documents cannot be used")).
			To(ConsistOf(ContainSubstring("other.json")))
	})

	It("does not wait for a pipe, and keeps the documents", func(ctx SpecContext) {
		pin("client.json", client.document(client.Redirect))
		Expect(ask(ctx).StatusCode).To(Equal(http.StatusOK))
		Expect(syscall.Mkfifo(filepath.Join(folder, "pipe.json"), 0o600)).To(Succeed())
		Expect(ask(ctx).StatusCode).To(Equal(http.StatusOK))
		Expect(world.Log.String()).To(ContainSubstring("pipe.json: it is not a regular file: remove it"))
	})

	It("ignores other files", func(ctx SpecContext) {
		pin("client.json", client.document(client.Redirect))
		pin("README", "notes")
		pin(".client.json.swp", "{")
		Expect(ask(ctx).StatusCode).To(Equal(http.StatusOK))
	})

	DescribeTable("reports every mistake before the start",
		func(ctx SpecContext, said string, files map[string]string) {
			for name, document := range files {
				pin(name, document)
			}
			ran := Run(ctx, "config", "--dev", "--client-documents", folder)
			Expect(ran.Code).To(Equal(1))
			Expect(ran.Err).To(And(ContainSubstring("--client-documents"), ContainSubstring(said)))
		},
		Entry("no JSON", "one.json: decode the document", map[string]string{"one.json": "{"}),
		Entry("no client_id", "one.json", map[string]string{"one.json": `{"client_name":"A"}`}),
		Entry("a client_id that is not a URL", "malformed_client_id",
			map[string]string{"one.json": `{"client_id":"client"}`}),
		Entry("a document that would be refused", "redirect_uris",
			map[string]string{"one.json": `{"client_id":"https://client.example/c","client_name":"A"}`}),
		Entry("two documents of one client", "the same client_id", map[string]string{
			"one.json": `{"client_id":"https://client.example/c","client_name":"A",` +
				`"redirect_uris":["https://client.example/cb"]}`,
			"two.json": `{"client_id":"https://client.example/c","client_name":"B",` +
				`"redirect_uris":["https://client.example/cb"]}`,
		}),
		Entry("a file that is too large", "more than 5120 bytes",
			map[string]string{"one.json": strings.Repeat(" ", 5121)}),
	)

	It("reports a folder that does not exist", func(ctx SpecContext) {
		ran := Run(ctx, "config", "--dev", "--client-documents", filepath.Join(folder, "missing"))
		Expect(ran).To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring("--client-documents"))))
	})
})

var _ = Describe("The commands for documents of clients", Label("CIMD", "C59", "cli"), func() {
	var folder string
	var world *World
	var client *Client
	var environment []string
	BeforeEach(func() {
		folder = GinkgoT().TempDir()
		world = NewWorld()
		client = world.NewClient()
		environment = []string{"SSL_CERT_FILE=" + world.Clients.Certificate()}
	})
	run := func(args ...string) Ran {
		GinkgoHelper()
		return BuildBinary().Do(environment, args...)
	}
	known := func(command string) Ran {
		GinkgoHelper()
		return run(append([]string{"clients", command, "--dev", "--client-documents", folder}, world.Kept()...)...)
	}

	It("fetch a document to pin, and list it beside the stored ones", func(ctx SpecContext) {
		fetched := run("clients", "fetch", "--dev", client.ID)
		Expect(fetched).To(And(HaveField("Code", 0), HaveField("Out", ContainSubstring(`"client_id":"`+client.ID+`"`))),
			fetched.Err)
		file := filepath.Join(folder, "client.json")
		Expect(os.WriteFile(file, []byte(fetched.Out), 0o600)).To(Succeed())
		another := world.NewClient()
		another.Connect(ctx)

		Expect(known("list").Out).
			To(And(MatchRegexp("%s +%s ", client.ID, file), MatchRegexp("%s +store ", another.ID)))
	})

	It("say that nothing is known, and how to use them", func() {
		Expect(known("list")).
			To(And(HaveField("Code", 0), HaveField("Out", ContainSubstring("No document is pinned or stored"))))
		Expect(run("clients", "fetch")).
			To(And(HaveField("Code", 2), HaveField("Err", ContainSubstring("name one client_id"))))
		Expect(run("clients", "fetch", "--dev", "http://client.example/c")).
			To(And(HaveField("Code", 1),
				HaveField("Err", ContainSubstring("must be the https URL of a metadata document"))))
		Expect(run("clients", "fetch", "--dev", world.Clients.URL("/missing"))).
			To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring("the status of the response is 404"))))
	})
})
