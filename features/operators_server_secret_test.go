package features_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

var _ = Describe("Starting on a SQLite file with a server secret that is not its own", Label("J2", "H7"), func() {
	var world *World
	var client *Client
	var tokens Tokens
	var file, own string
	BeforeEach(func(ctx SpecContext) {
		world = NewWorld()
		world.inFile()
		client, file = world.NewClient(), filepath.Join(world.Dir, "oauth.db.secret")
		tokens = client.Connect(ctx)
		own = serverSecret(world)
		world.Stop()
	})
	replaceBy := func(secret string) {
		GinkgoHelper()
		Expect(os.Remove(file)).To(Succeed())
		if secret != "" {
			Expect(os.WriteFile(file, []byte(secret), 0o600)).To(Succeed())
		}
	}
	start := func() error {
		config := service.Config{DataDir: world.Dir, Development: true, EditorToken: world.Token}
		config.Issuer = world.Issuer
		service, err := service.Open(context.Background(), config)
		if err == nil {
			Expect(service.Close()).To(Succeed())
		}
		return err
	}
	keys := func(ctx context.Context, args ...string) Ran {
		return Run(ctx, append([]string{"keys"}, append(args, world.Kept()...)...)...)
	}

	DescribeTable("is refused with the remedy, changes nothing, and is found by store check:",
		func(ctx SpecContext, secret, problem string) {
			replaceBy(secret)
			refused := start()
			Expect(refused).To(MatchError(And(ContainSubstring(problem), ContainSubstring("restore the"),
				ContainSubstring("keys rotate --forget-old"))))
			Expect(refused.Error()).NotTo(ContainSubstring("ooo"))
			checks, ran := world.CheckStore(ctx)
			Expect(ran.Code).To(Equal(1))
			Expect(checks).To(ContainElement(And(HaveField("Check", "server secret"),
				HaveField("Problem", And(ContainSubstring(problem), ContainSubstring("restore the"))))))
			Expect(Run(ctx, "store", "copy", "--data", world.Dir, "--to",
				"sqlite://"+filepath.Join(GinkgoT().TempDir(), "copy.db"))).
				To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring(problem))))
			rotated := keys(ctx, "rotate")
			Expect(rotated).To(And(HaveField("Code", 1),
				HaveField("Err", And(ContainSubstring(problem), ContainSubstring("restore the")))))

			if secret == "" {
				Expect(file).NotTo(BeAnExistingFile())
			} else {
				Expect(serverSecret(world)).To(Equal(secret))
			}
			Expect(os.WriteFile(file, []byte(own), 0o600)).To(Succeed())
			world.start(world.Issuer[len("http://"):])
			Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
		},
		Entry("another one", strings.Repeat("o", 32), "used with another server secret"),
		Entry("none", "", "no such file"),
	)

	DescribeTable("begins anew once the operator gives the old one up:", func(ctx SpecContext, secret string) {
		replaceBy(secret)
		rotated := keys(ctx, "rotate", "--forget-old")
		Expect(rotated.Code).To(BeZero(), rotated.Err)
		world.start(world.Issuer[len("http://"):])
		Expect(client.Token(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
		client.Connect(ctx)
		_, checked := world.CheckStore(ctx)
		Expect(checked.Code).To(BeZero(), checked.Out)
	}, Entry("another one", strings.Repeat("o", 32)), Entry("none", ""))

	It("is refused for the secret before a rotation, also if no service has run since", func(ctx SpecContext) {
		Expect(keys(ctx, "rotate").Code).To(BeZero())
		next := serverSecret(world)
		replaceBy(own)
		Expect(start()).To(MatchError(ContainSubstring("another server secret")))
		replaceBy(next)
		Expect(start()).To(Succeed())
	})
})
