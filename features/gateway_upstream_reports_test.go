package features_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/pasteport/pasteport/bootstrap/service"
)

var _ = Describe("Reporting what a gateway has found out about its upstreams", Label("gateway", "U31"), func() {
	also := func(path, address string) func(*service.Config) {
		return func(c *service.Config) {
			c.Gateway.Upstreams = append(c.Gateway.Upstreams, serverAt(path, address))
		}
	}

	It("prints addresses without their paths, which may have a key, and tells upstreams on one host apart",
		func(ctx SpecContext) {
			upstream, dead := NewUpstream(apiKey), freeAddress()
			run := BuildBinary().Run(nil, "gateway", "--dev", "--addr", "127.0.0.1:0", "--admin-addr", "off", "--data",
				GinkgoT().TempDir(),
				"--upstream", "/one = http://"+dead+"/s3cret/mcp", "--upstream", "/two = http://"+dead+
					"/other-s3cret/mcp?key=s3cret", "--upstream", "/three = "+upstream.URL+"/s3cret/mcp")
			Eventually(run.Out).WithTimeout(patience).
				Should(gbytes.Say(`warning: upstream http://` + dead + ` of /one: it cannot be reached: .*\n` +
					`warning: upstream http://` + dead + ` of /two: it cannot be reached: .*\n` + `upstream ` +
					upstream.URL +
					`: reachable, refuses unknown keys, sent as bearer token in the header Authorization\n`))
			run.Interrupt()
			Eventually(run).WithTimeout(patience).Should(HaveField("ExitCode()", 0))
			Expect(string(run.Out.Contents()) + string(run.Err.Contents())).NotTo(ContainSubstring("s3cret"))
		})

	DescribeTable("describes the target of a redirect without its text", func(ctx SpecContext, target, named string) {
		service, report := operateChecked(ctx, upstreamAnswering(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target, http.StatusTemporaryRedirect)
		})())
		Expect(report.State.Cause).To(Equal("it redirects " + named + ", which is not followed"))
		Expect(service.Log.String()).NotTo(ContainSubstring("s3cret"))
		Expect(service.AskAdmin(ctx, "/readyz").Text).NotTo(ContainSubstring("s3cret"))
	},
		Entry("at another path", "/s3cret/mcp", "to another path or query there"),
		Entry("on another host", "https://s3cret.example:8443/s3cret?key=s3cret", "to another host"),
	)

	It("has the exact address on the admin page of this computer only", func(ctx SpecContext) {
		upstream := NewUpstream(apiKey)
		service, report := operateChecked(ctx, upstream.URL+"/s/s3cret/mcp?key=of-the-query")
		Expect(report.Name).To(Equal(upstream.URL))
		Expect(service.AskAdmin(ctx, "/").Text).
			To(And(ContainSubstring(upstream.URL+"/s/s3cret/mcp"), Not(ContainSubstring("of-the-query"))))
		Expect(service.AskAdmin(ctx, "/readyz").Text + service.Log.String()).NotTo(ContainSubstring("s3cret"))
	})

	It("names the paths that clients call only for upstreams on one host", func(ctx SpecContext) {
		one, another := NewUpstream(apiKey), NewUpstream(apiKey)
		Expect(operateBoth(ctx, one.URL+"/mcp", also("/two", one.URL+"/json"))).To(HaveExactElements(
			HaveField("Name", one.URL+" of /mcp"), HaveField("Name", one.URL+" of /two")))
		Expect(operateBoth(ctx, one.URL+"/mcp", also("/two", another.URL+"/mcp"))).
			To(HaveExactElements(HaveField("Name", one.URL), HaveField("Name", another.URL)))
	})

	It("logs no path when keys cannot be verified or a call is redirected", Label("U9"), func(ctx SpecContext) {
		upstream := NewUpstream(apiKey)
		world := NewGateway(upstream.URL + "/s/s3cret/json")
		upstream.Answer(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/") || r.Header.Get("X-Request-Id") == "" {
				failing(http.StatusOK, "application/json", resultOfMCP)(w, r)
				return
			}
			http.Redirect(w, r, r.URL.Path+"/", http.StatusTemporaryRedirect)
		})
		world.Call(ctx, world.NewClient().Connect(ctx).Access)
		Expect(world.Log.String()).To(ContainSubstring(
			"it redirects to the same address with a slash at the end of its path: set upstream to the " +
				"address of the MCP server"))
		upstream.Answer(failing(http.StatusInternalServerError, "text/plain", "no"))
		Expect(world.NewClient().Consent(ctx).Approve(ctx, apiKey).StatusCode).To(Equal(http.StatusServiceUnavailable))
		Expect(world.Log.String()).
			To(And(ContainSubstring("cannot verify tokens at the site"), Not(ContainSubstring("s3cret"))))
	})

	It("shows other computers the state and the remedy without the detail, which can have an internal address",
		func(ctx SpecContext) {
			dead := freeAddress()
			service, _ := operateChecked(ctx, "http://"+dead+"/mcp", func(c *service.Config) {
				c.AdminAddr = "0.0.0.0:0"
			})
			port := portOf(service.Admin)
			service.Admin = "http://" + net.JoinHostPort(outside(), port)
			Expect(service.AskAdmin(ctx, "/readyz").Text).
				To(And(Not(ContainSubstring(dead)), Not(ContainSubstring("dial")),
					ContainSubstring(`"status":"degraded"`),
					ContainSubstring(`"problem":"down","state":"down","remedy":"start the MCP server`)))
			service.Admin = "http://" + net.JoinHostPort("127.0.0.1", port)
			Expect(service.AskAdmin(ctx, "/readyz").Text).To(ContainSubstring(dead))
		})

	It("logs a change of the detail of a mistake, and not the same one again", func(ctx SpecContext) {
		var status atomic.Int32
		status.Store(http.StatusNotFound)
		service, _ := operateChecked(ctx, upstreamAnswering(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(int(status.Load()))
		})())
		service.service.CheckUpstreams(ctx)
		status.Store(http.StatusMethodNotAllowed)
		service.service.CheckUpstreams(ctx)
		service.service.CheckUpstreams(ctx)
		Expect(linesWith(service.Log.String(), "an upstream does not work")).
			To(HaveExactElements(ContainSubstring("it answered 404"), ContainSubstring("it answered 405")))
	})
})

// operateBoth serves a gateway to two upstreams until the first check of both has ended, and
// returns its reports.
func operateBoth(ctx context.Context, first string, second func(*service.Config)) (reports []service.UpstreamStatus) {
	GinkgoHelper()
	checked := make(chan []service.UpstreamStatus, 1)
	Operate(gatewayTo(first), second, func(c *service.Config) {
		c.UpstreamsChecked = func(all []service.UpstreamStatus) { checked <- all }
	})
	Eventually(checked).WithContext(ctx).WithTimeout(patience).Should(Receive(&reports))
	Expect(reports).To(HaveLen(2))
	return reports
}
