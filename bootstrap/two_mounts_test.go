package bootstrap_test

import (
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/pasteporttest"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Two OAuth servers on one store", Label("D17", "N16"), func() {
	It("do not redeem or refresh tokens of each other", func() {
		store := openStore()
		mine, theirs := openHost(oauth.Config{Issuer: "https://cms.example"}, store, nil),
			openHost(oauth.Config{Issuer: "https://cms.example/other"}, store, nil)
		code := mine.code()
		Expect(tokensOf(theirs.exchange(code)).Error).To(Equal("invalid_grant"))
		tokens := tokensOf(mine.exchange(code))
		Expect(tokensOf(theirs.refresh(tokens.Refresh)).Error).To(Equal("invalid_grant"))
		Expect(tokensOf(mine.refresh(tokens.Refresh)).Error).To(BeEmpty())
	})

	It("close the streams of all mounted MCP servers when a grant ends", Label("G16", "E9"), func(ctx SpecContext) {
		site := pasteporttest.New(GinkgoTB())
		mine := openHost(site.Config(oauth.Config{}), openStore(), nil)
		second := bootstrap.NewMCPServer(mcp.NewServer(&mcp.Implementation{Name: "second", Version: "1"}, nil),
			bootstrap.WithOAuth(mine.authz))
		Expect(second.Register(echo.New())).To(Succeed())
		site.Serve(mine.Echo)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, site.URL()+"/mcp", http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		r.Header.Set("Accept", "text/event-stream")
		stream, err := site.Connect(hostToken).Client().Do(r)
		Expect(err).NotTo(HaveOccurred())
		Expect(stream.StatusCode).To(Equal(http.StatusOK))
		Expect(mine.authz.EndGrantsOf(ctx, hostToken)).To(Equal(1))
		_, err = io.Copy(io.Discard, stream.Body)
		Expect(err).NotTo(HaveOccurred())
		Expect(stream.Body.Close()).To(Succeed())
	}, SpecTimeout(10*time.Second))

	It("refuse forms of each other, even with the same issuer", Label("B4"), func() {
		store, issuer := openStore(), "https://cms.example"
		mine := openHost(oauth.Config{Issuer: issuer}, store, nil)
		theirs := openHost(oauth.Config{Issuer: issuer, Resource: issuer + "/other"}, store, nil)
		form := mine.ticket()
		Expect(theirs.approve(form)).
			To(And(HaveField("Code", http.StatusBadRequest), HaveField("Header()", Not(HaveKey("Location")))))
		Expect(mine.approve(form).Code).To(Equal(http.StatusSeeOther))
	})
})
