package features_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/service"
)

const signingSecret = "signing-secret-of-the-specs-32-bytes"

// signedBy checks an HTTP message signature (RFC 9421) as an upstream does.
func signedBy(secret string, r *http.Request) bool {
	GinkgoHelper()
	parameters, found := strings.CutPrefix(r.Header.Get("Signature-Input"), "pasteport=")
	Expect(found).To(BeTrue(), "the request is signed")
	listed, _, _ := strings.Cut(strings.TrimPrefix(parameters, "("), ")")
	var base strings.Builder
	for _, quoted := range strings.Fields(listed) {
		name := strings.Trim(quoted, `"`)
		value := r.Header.Get(name)
		if name == "@method" {
			value = r.Method
		}
		base.WriteString(quoted + ": " + value + "\n")
	}
	base.WriteString(`"@signature-params": ` + parameters)
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, base.String())
	return r.Header.Get("Signature") == "pasteport=:"+base64.StdEncoding.EncodeToString(mac.Sum(nil))+":"
}

// static returns a gateway with one shared key for its upstream.
func static(verification service.Verification) func(*service.Config) {
	return func(c *service.Config) {
		c.Gateway.Credential, c.Gateway.Secret, c.Gateway.SigningSecret = bootstrap.CredentialStatic, apiKey,
			signingSecret
		c.Verification = verification
	}
}

var _ = Describe("Telling an upstream who is calling", Label("gateway", "RFC 9421", "U7"), func() {
	const personal = "token-of-ada"
	var upstream *UpstreamServer
	var world *World
	BeforeEach(func(ctx SpecContext) {
		upstream = NewUpstream(apiKey)
		world = NewGateway(upstream.URL+"/mcp", static(ada(personal)))
		world.Token = personal
	})

	It("sends the caller in signed headers that no client can set, and not the person's token",
		Label("U5", "J13"), func(ctx SpecContext) {
			client := world.NewClient()
			talk := world.Converse(ctx, stateless, client.Connect(ctx).Access)
			forged := func(r *http.Request) {
				for _, name := range []string{"X-Pasteport-Subject", "X-Pasteport-Roles", "X-Pasteport-Admin"} {
					r.Header.Set(name, "root")
				}
			}
			Expect(talk.Post(ctx, "tools/list", params{}, forged).StatusCode).To(Equal(http.StatusOK))
			asked := upstream.Asked()[0]
			said := map[string]string{}
			for name := range asked.Header {
				if strings.HasPrefix(name, "X-Pasteport-") {
					value, err := url.PathUnescape(asked.Header.Get(name))
					Expect(err).NotTo(HaveOccurred())
					said[name] = value
				}
			}
			Expect(said).To(And(
				HaveLen(5), HaveKeyWithValue("X-Pasteport-Subject", "Adá,"),
				HaveKeyWithValue("X-Pasteport-Client", client.ID),
				HaveKeyWithValue("X-Pasteport-Resource", world.MCP()), HaveKey("X-Pasteport-Grant"),
				HaveKey("X-Pasteport-Roles"),
			))
			Expect(asked.Header.Get("X-Pasteport-Roles")).To(Equal("editor,caf%C3%A9%2Ctea"))
			Expect(asked.Header.Get("Authorization")).To(Equal("Bearer " + apiKey))
			Expect(signedBy(signingSecret, asked)).To(BeTrue())
			Expect(upstream.Wire()).
				NotTo(Or(ContainSubstring(personal), ContainSubstring(signingSecret), ContainSubstring("root")))
		})

	It("signs the request so that a change is detected", func(ctx SpecContext) {
		world.Call(ctx, world.NewClient().Connect(ctx).Access)
		asked := upstream.Asked()[0]
		body, err := io.ReadAll(asked.Body)
		Expect(err).NotTo(HaveOccurred())
		sum := sha256.Sum256(body)
		Expect(asked.Header.Get("Content-Digest")).
			To(Equal("sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"))
		Expect(asked.Header.Get("Signature-Input")).
			To(MatchRegexp(`;created=\d{10};keyid="pasteport";alg="hmac-sha256"$`))
		later := strings.Replace(asked.Header.Get("Signature-Input"), "created=1", "created=2", 1)
		for i, spoil := range []func(*http.Request){
			with("X-Pasteport-Subject", "eve"), with("X-Pasteport-Roles", "root"), with("X-Pasteport-Client", "x"),
			with("X-Pasteport-Grant", "x"), with("X-Pasteport-Resource", "x"), with("Content-Digest", "sha-256=:x:"),
			func(r *http.Request) { r.Method = http.MethodDelete }, with("Signature-Input", later),
		} {
			spoiled := asked.Clone(ctx)
			spoil(spoiled)
			Expect(signedBy(signingSecret, spoiled)).To(BeFalse(), "%d", i)
		}
	})
})

var _ = Describe("A gateway to several MCP servers", Label("gateway", "U1"), func() {
	const otherKey = "key-of-the-other"
	var first, second *UpstreamServer
	var world *World
	BeforeEach(func() {
		first, second = NewUpstream(apiKey), NewUpstream(otherKey)
		world = NewGateway(first.URL+"/mcp", func(c *service.Config) {
			c.Gateway.Upstreams = append(c.Gateway.Upstreams,
				serverAt("/files", second.URL+"/mcp"))
		})
	})
	files := func(form url.Values) { form.Set("resource", world.Issuer+"/files") }

	// at lists the tools of the server at the path.
	at := func(ctx SpecContext, path, access string) Response {
		GinkgoHelper()
		talk := &Conversation{
			World:    world,
			Revision: stateless,
			Access:   access,
			target:   world.Issuer + path,
		}
		return talk.Post(ctx, "tools/list", params{})
	}

	It("keeps the tokens and keys of the servers apart", Label("U3", "U6", "G8"), func(ctx SpecContext) {
		mine := world.NewClient().Connect(ctx).Access
		world.Token = otherKey
		client := world.NewClient()
		code := client.Authorize(ctx, files)
		form := client.Exchange(code)
		files(form)
		theirs := client.Token(ctx, form).Tokens().Access
		Expect(at(ctx, "/mcp", mine).StatusCode).To(Equal(http.StatusOK))
		Expect(at(ctx, "/files", theirs).StatusCode).To(Equal(http.StatusOK))
		Expect(at(ctx, "/mcp", theirs)).To(BeChallenged(world, "invalid_token"))
		refused := at(ctx, "/files", mine)
		Expect(refused.StatusCode).To(Equal(http.StatusUnauthorized))
		Expect(refused.Header.Get("WWW-Authenticate")).
			To(ContainSubstring(world.Issuer + `/.well-known/oauth-protected-resource/files"`))
		Expect(first.Wire()).To(And(ContainSubstring(apiKey), Not(ContainSubstring(otherKey))))
		Expect(second.Wire()).To(And(ContainSubstring(otherKey), Not(ContainSubstring(apiKey))))
	})

	It("verifies a key only with its own server", Label("U3"), func(ctx SpecContext) {
		client := world.NewClient()
		Expect(client.Consent(ctx, files).Approve(ctx, apiKey)).To(BeAPage(http.StatusForbidden, ""))
		world.Token = apiKey
		Expect(client.Authorize(ctx)).NotTo(BeEmpty())
	})

	It("serves metadata for each path, and lists the URLs at the root", Label("F6", "U1"), func(ctx SpecContext) {
		for path, resource := range map[string]string{"/mcp": "/mcp", "/files": "/files", "": "/mcp"} {
			document := Get(ctx, world.Issuer+"/.well-known/oauth-protected-resource"+path)
			Expect(document.Text).To(ContainSubstring(`"resource":"` + world.Issuer + resource + `"`))
		}
		Expect(Get(ctx, world.Issuer+"/").Text).
			To(And(ContainSubstring(world.Issuer+"/mcp<"), ContainSubstring(world.Issuer+"/files<")))
	})
})
