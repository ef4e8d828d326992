package bootstrap_test

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Requiring scopes by the arguments of a call", Label("G10"), func() {
	const issuer = "https://cms.example"
	// Payments above 100 need another scope.
	scopes := bootstrap.WithToolScopes(func(tool string, arguments map[string]any) oauth.Scopes {
		amount, _ := arguments["amount"].(json.Number)
		if paid, err := amount.Float64(); tool == "pay" && err == nil && paid > 100 {
			return oauth.NewScopes("mcp:pay")
		}
		return oauth.NewScopes("mcp")
	})
	config := oauth.Config{
		Issuer:        issuer,
		Verifier:      newFakeVerifier(),
		Scopes:        []oauth.Scope{{Name: "mcp"}, {Name: "mcp:pay", Implies: []string{"mcp"}}},
		DefaultScopes: []string{"mcp"},
	}
	paying := func(arguments string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"` + arguments + `}}`
	}

	DescribeTable("asks for another scope only where these arguments need it:",
		func(message string, status int) {
			server, passed := openHost(config, openStore(), nil), 0
			guarded := bootstrap.Guard(func(w http.ResponseWriter, _ *http.Request, _ oauth.Caller) {
				passed++
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
			}, bootstrap.WithOAuth(server.authz), scopes)
			server.Echo = echo.New()
			Expect(guarded.Register(server.Echo)).To(Succeed())
			got := server.sendTo(issuer+"/mcp", tokensOf(server.exchange(server.code())).Access, message)
			Expect(got.Code).To(Equal(status), got.Body.String())
			switch status {
			case http.StatusOK:
				Expect(passed).To(Equal(1))
			case http.StatusForbidden:
				Expect(got.Header().Get("WWW-Authenticate")).
					To(And(ContainSubstring(`error="insufficient_scope"`), ContainSubstring(`scope="mcp mcp:pay"`)))
				fallthrough
			default:
				Expect(passed).To(BeZero())
			}
		},
		Entry("a small amount", paying(`,"arguments":{"amount":100}`), http.StatusOK),
		Entry("a large amount", paying(`,"arguments":{"amount":100.01}`), http.StatusForbidden),
		Entry("a number larger than a float", paying(`,"arguments":{"note":1e999,"amount":101}`),
			http.StatusForbidden),
		Entry("no arguments", paying(``), http.StatusOK),
		Entry("a batch", `[`+paying(`,"arguments":{"amount":1}`)+`,`+
			paying(`,"arguments":{"amount":1000}`)+`]`, http.StatusBadRequest),
		Entry("arguments in another case, which some parsers read",
			paying(`,"arguments":{},"Arguments":{"amount":1000}`), http.StatusBadRequest),
		Entry("two arguments with one name", paying(`,"arguments":{"amount":1,"amount":1000}`), http.StatusBadRequest),
	)
})
