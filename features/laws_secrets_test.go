package features_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service"
)

var _ = Describe("Keeping secrets", Label("B15", "H3", "N13"), func() {
	It("writes no secret of a full run to the database, the write-ahead log, the key file or logs",
		func(ctx SpecContext) {
			world := NewWorld(func(config *service.Config) { config.RecheckEvery = time.Minute })
			client := world.NewClient()
			page := client.Consent(ctx)
			page.Approve(ctx, "demo_a-wrong-token-that-was-pasted")
			code := page.Approve(ctx, world.Token).Target().Query().Get("code")
			tokens := client.Token(ctx, client.Exchange(code)).Tokens()
			world.Call(ctx, tokens.Access)
			next := client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
			world.Call(ctx, next.Access)
			client.Token(ctx, client.Refresh("ppr_"+strings.Repeat("B", 43)))
			spoiled := client.Exchange(code)
			spoiled.Set("client_secret", "a-client-secret-that-was-sent")
			client.Token(ctx, spoiled)
			Post(ctx, world.Issuer+"/oauth/token?code="+code, url.Values{})
			world.Call(ctx, world.Token)
			stranger := "ppa_" + strings.Repeat("C", 43)
			world.Call(ctx, stranger)
			world.Clock.Advance(time.Minute)
			for _, revision := range []string{httpSSE, sessions, stateless} {
				world.Converse(ctx, revision, next.Access).Ask(ctx, "tools/list", params{})
			}
			ended := client.Connect(ctx)
			Expect(world.EndGrantsOf(ctx, world.TokenFor(ctx, "ada", demosite.Author))).Error().NotTo(HaveOccurred())
			client.Token(ctx, client.Exchange(code)) // a replay
			world.Call(ctx, ended.Access)

			secrets := map[string]string{
				"host token":          world.Token,
				"wrong host token":    "demo_a-wrong-token-that-was-pasted",
				"code":                code,
				"verifier":            client.Verifier,
				"access token":        tokens.Access,
				"second access token": next.Access,
				"refresh token":       tokens.Refresh,
				"successor":           next.Refresh,
				"ticket":              page.Hidden.Get("ticket"),
				"state":               client.State,
				"client secret":       "a-client-secret-that-was-sent",
				"server secret":       serverSecret(world),
				"a stranger's token":  stranger,
				"third access token":  ended.Access,
				"third refresh token": ended.Refresh,
			}
			before := filesOf(world.Dir)
			client.Revoke(ctx, next.Refresh)
			Expect(world.EndGrantsOf(ctx, world.Token)).Error().NotTo(HaveOccurred())
			world.Stop()
			places := filesOf(world.Dir)
			for name, content := range before {
				places["running "+name] = content
			}
			places["log"] = []byte(world.Log.String())
			Expect(places).To(HaveKey("running oauth.db-wal"))
			Expect(places["log"]).NotTo(BeEmpty())
			for what, secret := range secrets {
				for _, spelled := range spellings(secret) {
					for place, content := range places {
						if what == "server secret" && strings.HasSuffix(place, ".secret") {
							continue
						}
						Expect(bytes.Contains(content, []byte(spelled))).To(BeFalse(), "%s found in %s", what, place)
					}
				}
			}
		})
})

// serverSecret returns the newest server secret of a world.
func serverSecret(world *World) string {
	GinkgoHelper()
	content := must(os.ReadFile(filepath.Join(world.Dir, "oauth.db.secret")))
	if len(content) == 32 {
		return string(content)
	}
	newest, _, _ := strings.Cut(string(content), "\n")
	_, encoded, _ := strings.Cut(newest, " ")
	return string(must(base64.StdEncoding.DecodeString(encoded)))
}

func filesOf(dir string) map[string][]byte {
	GinkgoHelper()
	entries := must(os.ReadDir(dir))
	files := map[string][]byte{}
	for _, entry := range entries {
		files[entry.Name()] = must(os.ReadFile(filepath.Join(dir, entry.Name())))
	}
	return files
}

// spellings are the encodings in which a secret could be written.
func spellings(secret string) []string {
	random := secret
	if len(secret) > 4 && strings.HasPrefix(secret, "pp") {
		random = secret[4:]
	}
	return []string{
		random, url.QueryEscape(secret), hex.EncodeToString([]byte(secret)),
		strings.ToUpper(hex.EncodeToString([]byte(secret))),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)),
	}
}

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
				r := must(http.NewRequestWithContext(ctx, http.MethodGet, world.Issuer+path, nil))
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
