package features_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// without removes the scheme, which an address does not have.
func without(scheme, url string) string { return strings.TrimPrefix(url, scheme) }

var _ = Describe("Checking the health of a service in a container", Label("operations", "deployment"), func() {
	It("succeeds when the service is ready", func(ctx SpecContext) {
		admin := without("http://", Operate().Admin)
		asked := Run(ctx, "health", "--admin-addr", admin)
		Expect(asked).To(Equal(Ran{0, "ready: http://" + admin + "/readyz\n", ""}))
	})

	It("succeeds when an upstream does not work, and names the problem", Label("U31"), func(ctx SpecContext) {
		service, _ := operateChecked(ctx, "http://"+freeAddress()+"/mcp")
		asked := Run(ctx, "health", "--admin-addr", without("http://", service.Admin))
		Expect(asked.Code).To(BeZero())
		Expect(asked.Out).To(MatchRegexp(`^degraded: http://\S+/readyz: upstream of ` + service.MCP() +
			`: it cannot be reached: `))
	})

	It("uses loopback when the service listens on all addresses", func(ctx SpecContext) {
		service := Operate(func(config *service.Config) { config.AdminAddr = ":0" })
		port := service.Admin[strings.LastIndex(service.Admin, ":"):]
		for _, everywhere := range []string{"", "0.0.0.0", "[::]"} {
			Expect(Run(ctx, "health", "--admin-addr", everywhere+port).Code).To(BeZero(), everywhere)
		}
	})

	It("reads the address from the settings of the service", func(ctx SpecContext) {
		admin := without("http://", Operate().Admin)
		file := filepath.Join(GinkgoT().TempDir(), "pasteport.yaml")
		Expect(os.WriteFile(file, []byte("admin-addr: "+admin+"\ndemo-token: file:/run/secrets/none\n"), 0o600)).
			To(Succeed())
		Expect(Run(ctx, "health", "--config", file).Code).To(BeZero())
		GinkgoT().Setenv("PASTEPORT_ADMIN_ADDR", admin)
		Expect(Run(ctx, "health").Code).To(BeZero())
	})

	It("fails and names the failed check", func(ctx SpecContext) {
		service := Operate()
		service.LoseSite()
		asked := Run(ctx, "health", "--admin-addr", without("http://", service.Admin))
		Expect(asked.Code).To(Equal(1))
		Expect(asked.Out).To(BeEmpty())
		Expect(asked.Err).
			To(MatchRegexp(`^pasteport: the service is not ready: demo site: reading the site: .*no such file`))
	})

	It("fails while the server secret is missing, because every consent page fails too",
		Label("A33"), func(ctx SpecContext) {
			service := Operate()
			secret := filepath.Join(service.Dir, "oauth.db.secret")
			Expect(os.Rename(secret, secret+".away")).To(Succeed())
			asked := Run(ctx, "health", "--admin-addr", without("http://", service.Admin))
			Expect(asked.Code).To(Equal(1))
			Expect(asked.Err).
				To(MatchRegexp(`^pasteport: the service is not ready: oauth database: reading the server secrets: ` +
					`.*no such file`))
			Expect(os.Rename(secret+".away", secret)).To(Succeed())
			Eventually(func() int {
				return Run(ctx, "health", "--admin-addr", without("http://", service.Admin)).Code
			}).WithTimeout(patience).
				Should(BeZero(), "an outcome stands for a second")
		})

	DescribeTable("fails", func(ctx SpecContext, args func() []string, code int, complaint string) {
		asked := Run(ctx, append([]string{"health"}, args()...)...)
		Expect(asked.Code).To(Equal(code))
		Expect(asked.Err).To(ContainSubstring(complaint))
	},
		Entry("when no service listens", func() []string {
			return []string{"--admin-addr", "127.0.0.1:1"}
		}, 1, `is "pasteport gateway" or "pasteport serve" running`),
		Entry("when the listener is off", func() []string {
			return []string{"--admin-addr", "off"}
		}, 1, "admin-addr is off"),
		Entry("when another server responds", func() []string {
			other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte("hello"))
			}))
			DeferCleanup(other.Close)
			return []string{"--admin-addr", without("http://", other.URL)}
		}, 1, "is not an admin listener of pasteport"),
	)
})
