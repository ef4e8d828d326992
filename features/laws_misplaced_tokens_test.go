package features_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

var _ = Describe("Tokens of Pasteport in the wrong place", Label("H8", "V2"), func() {
	It("reach the log, the trace and the audit as their kinds only", func(ctx SpecContext) {
		audited, auditing := auditing(func(audit *service.AuditConfig) { audit.Arguments, audit.Log = true, true })
		world := NewWorld(auditing)
		client := world.NewClient()
		tokens := client.Connect(ctx)
		code := client.Authorize(ctx)
		secret := "pps_" + strings.Repeat("S", 43)
		for _, misplaced := range []string{tokens.Access, tokens.Refresh, code, secret} {
			get := func(path string) {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, world.Issuer+path, nil)
				Expect(err).NotTo(HaveOccurred())
				r.Header = http.Header{"User-Agent": {"app " + misplaced}, "X-Request-Id": {misplaced}}
				Send(r)
			}
			exchange := client.Exchange(client.Authorize(ctx))
			exchange.Set("redirect_uri", "http://127.0.0.1:4321/"+misplaced)
			client.Token(ctx, exchange)
			exchange = client.Exchange(client.Authorize(ctx))
			exchange.Set("resource", world.Issuer+"/"+misplaced)
			client.Token(ctx, exchange)
			for _, name := range []string{"redirect_uri", "resource", "client_id", "scope", "state"} {
				request := client.Request()
				request.Set(name, request.Get(name)+"/"+misplaced)
				get("/oauth/authorize?" + request.Encode())
			}
			get("/" + misplaced)
			Get(ctx, world.MCP()+"/"+url.PathEscape("token="+misplaced))
			talk := world.Converse(ctx, stateless, tokens.Access)
			escaped := json.RawMessage(`"\u0070` + misplaced[1:] + `"`)
			talk.Use(ctx, "no_tool_"+misplaced, params{misplaced: misplaced, "escaped": escaped})
			talk.Ask(ctx, misplaced, params{})
			Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
		}
		Eventually(func() string { return string(filesOf(filepath.Dir(audited))["calls.jsonl"]) }).
			WithContext(ctx).WithTimeout(patience).Should(ContainSubstring(`"escaped":"[client secret]"`))
		world.Stop()
		places := filesOf(world.Dir)
		places["log"], places["audit"] = []byte(world.Log.String()), filesOf(filepath.Dir(audited))["calls.jsonl"]
		for place, content := range places {
			for _, misplaced := range []string{tokens.Access, tokens.Refresh, code, secret} {
				Expect(strings.Contains(string(content), misplaced)).To(BeFalse(), misplaced[:4]+" in "+place)
			}
		}
		Expect(world.Log.String()).To(And(ContainSubstring("[access token]"), ContainSubstring("[refresh token]"),
			ContainSubstring("[code]"), ContainSubstring("[client secret]")))
		Expect(string(places["oauth.db"])).To(ContainSubstring("app [access token]"))
	})
})
