package features_test

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Naming clients that registered themselves", Label("L9"), func() {
	const loopback, callback, cursor = "http://127.0.0.1:4321/callback", "https://app.example/callback",
		"cursor://anysphere.cursor-mcp/oauth/callback"
	var operated *Operated
	run := func(ctx context.Context, args ...string) string {
		return Run(ctx, append(args, operated.Kept()...)...).Out
	}
	BeforeEach(func() { operated = Operate(selfRegistration) })
	host := func(name string) string { return `<bdi class="host" dir="ltr">` + name + "</bdi>" }

	DescribeTable("names the redirect target on the consent page, and no publisher",
		Label("A35", "A36"), func(ctx SpecContext, redirect, target, advice string) {
			page := operated.RegisterClient(ctx, redirect).Consent(ctx)
			Expect(page.Title).To(Equal("Connect an app to Demo site?"))
			Expect(page.Text).
				To(And(ContainSubstring("The name of this app is unverified."), ContainSubstring("Spec Client"),
					ContainSubstring("<dt>Access goes to</dt><dd>"+target+"</dd>"),
					ContainSubstring(advice)))
			Expect(page.Text).
				NotTo(Or(ContainSubstring("published at"), ContainSubstring("Two different addresses")))
		},
		Entry("a program on this computer", loopback, host("127.0.0.1:4321"),
			"The app’s access goes to a program on this computer."),
		Entry("an app on this device", cursor, "an app on this device ("+host("cursor:")+")",
			"The app’s access goes to an app on this device."),
		Entry("a host on the web", callback, host("app.example"), "and have just started this connection yourself"),
	)

	It("gives an app no name that it does not have", Label("A35", "L6"), func(ctx SpecContext) {
		client := operated.NewClient()
		client.Redirect = callback
		answer := operated.Register(ctx, map[string]any{"redirect_uris": []string{callback}})
		Expect(answer.Text).NotTo(ContainSubstring("client_name"))
		client.ID = decodeAny(answer)["client_id"].(string)
		Expect(client.Consent(ctx).Text).To(And(ContainSubstring("<h1>Connect an app to <bdi>Demo site</bdi>?</h1>"),
			ContainSubstring("This app has not given a name."), Not(ContainSubstring("The name of this app"))))
		client.Authorize(ctx)
		Expect(operated.Connections(ctx, operated.Token).Text).To(ContainSubstring("An app without a name"))
	})

	It("warns again after a wrong token", func(ctx SpecContext) {
		page := ReadPage(operated.RegisterClient(ctx, callback).Consent(ctx).Approve(ctx, "demo_wrong"))
		Expect(page.Title).To(Equal("Not connected yet: Connect an app to Demo site?"))
		Expect(page.Text).To(ContainSubstring("The name of this app is unverified."))
	})

	It("names no host of its own on the error page", func(ctx SpecContext) {
		client := operated.RegisterClient(ctx, callback)
		client.Redirect = "https://app.example/other"
		page := client.AskFor(ctx, client.Request())
		Expect(page.StatusCode).To(Equal(http.StatusBadRequest))
		Expect(page.Text).NotTo(ContainSubstring("App published at"))
	})

	It("says so in lists, the trace and the log, without the id", func(ctx SpecContext) {
		client := operated.RegisterClient(ctx, loopback)
		operated.Call(ctx, client.Connect(ctx).Access)
		traced := operated.Newest(ctx, "authorize client_metadata page token_judged code_issued exchange call")
		label := "self-registered/" + strings.TrimPrefix(client.ID, operated.Issuer+"/oauth/clients/")[:12] +
			` "Spec Client"`
		Expect(traced.Client).To(Equal(label))
		Expect(run(ctx, "trace")).To(ContainSubstring(label))
		Expect(run(ctx, "connections")).To(ContainSubstring(`self-registered "Spec Client"`))
		Expect(run(ctx, "grants", "list", "--name", "spec client")).To(ContainSubstring("self-registered  Spec Client"))
		Expect(run(ctx, "grants", "list", "--json", "--client", "self-registered")).
			To(ContainSubstring(`"client": "self-registered"`))
		Expect(operated.Connections(ctx, operated.Token).Text).
			To(ContainSubstring("unknown, because it registered itself here"))
		Expect(operated.Log.String()).To(And(ContainSubstring(`"client_registered","client":`+strconv.Quote(label)),
			MatchRegexp(`"grant_created",.*"client":`+regexp.QuoteMeta(strconv.Quote(label))),
			ContainSubstring(`"code_redeemed"`)))
		for _, shown := range []string{operated.Log.String(), run(ctx, "trace", "--json"),
			run(ctx, "grants", "list", "--json"), operated.Connections(ctx, operated.Token).Text} {
			Expect(shown).NotTo(ContainSubstring(client.ID))
		}
	})

	It("names a refused registration in the trace, with the rule and the remedy",
		Label("trace"), func(ctx SpecContext) {
			operated.Discover(ctx)
			operated.Register(ctx, map[string]any{"redirect_uris": []string{"some-app:/callback"}})
			refused := operated.Newest(ctx, "challenge resource_metadata server_metadata registration:refused")
			Expect(refused.State).To(Equal("stopped"))
			Expect(refused.Last().Rule).To(Equal("A14"))
			Expect(refused.Hint).To(ContainSubstring("allowed-private-schemes"))
		})
})
