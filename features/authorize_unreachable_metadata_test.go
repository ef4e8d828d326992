package features_test

import (
	"context"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/pasteport/pasteport/bootstrap/demosite"
)

// challenged answers like a vendor's edge that takes this server for a bot.
func challenged(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cf-Mitigated", "challenge")
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(http.StatusForbidden)
	_, _ = w.Write([]byte("<!DOCTYPE html><title>Just a moment...</title>"))
}

func statusOnly(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

var _ = Describe("Connecting while the document of an app cannot be fetched", Label("CIMD", "C57"), func() {
	const day = 24 * time.Hour
	var world *World
	var client *Client
	var good http.HandlerFunc
	var approvedOn string
	BeforeEach(func(ctx SpecContext) {
		world = NewWorld()
		client = world.NewClient()
		good = world.Clients.documents[client.path()]
		approvedOn = world.Clock.Now().UTC().Format(time.DateOnly)
		client.Connect(ctx)
		world.Clock.Advance(day)
	})
	serve := func(answer http.HandlerFunc) { world.Clients.Serve(client.path(), answer) }
	ask := func(ctx context.Context) Response { return client.AskFor(ctx, client.Request()) }
	unchecked := func() types.GomegaMatcher {
		return And(HaveField("StatusCode", http.StatusOK), HaveField("Text", And(
			ContainSubstring("This site could not check the app’s description just now; it was last checked on"),
			ContainSubstring("<time>"+approvedOn+"</time>"))))
	}
	isRefused := BeASafePage(http.StatusBadGateway, "invalid_client")

	DescribeTable("goes on for people who have connected before and for new ones, when its host",
		func(ctx SpecContext, answer http.HandlerFunc, reason string) {
			serve(answer)
			Expect(ask(ctx)).To(unchecked())
			another := world.TokenFor(ctx, "lin", demosite.Reader)
			for _, token := range []string{world.Token, another} {
				answer := client.Consent(ctx).Approve(ctx, token)
				Expect(answer.StatusCode).To(Equal(http.StatusSeeOther), answer.Text)
				Expect(client.Token(ctx, client.Exchange(answer.Target().Query().Get("code"))).StatusCode).
					To(Equal(http.StatusOK))
			}
			Expect(world.Decisions()).To(ContainElement(And(HavePrefix("cimd_unchecked "), ContainSubstring(reason))))
			Expect(world.Decisions()).NotTo(ContainElement(HavePrefix("cimd_rejected")))
		},
		Entry("answers 403 with a challenge for browsers", http.HandlerFunc(challenged),
			"the status of the response is 403"),
		Entry("answers 429", statusOnly(http.StatusTooManyRequests), "the status of the response is 429"),
		Entry("never answers", Label("long"), hanging, "get the document"),
		Entry("closes the connection", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}), "get the document"),
	)

	It("tells it again after a wrong token, in the log, in the trace and in a metric",
		Label("B8", "H8"), func(ctx SpecContext) {
			serve(challenged)
			again := client.Consent(ctx).Approve(ctx, "demo_wrong")
			Expect(again.StatusCode).To(Equal(http.StatusForbidden))
			Expect(again.Text).To(ContainSubstring("<time>" + approvedOn + "</time>"))
			Expect(linesWith(world.Log.String(), `"msg":"cimd_unchecked"`)).
				To(ConsistOf(And(ContainSubstring("status of the response is 403"),
					ContainSubstring(`"checked_at":"`+approvedOn))))
			Eventually(func() []string {
				return world.reasons(ctx, "client_metadata")
			}).WithTimeout(patience).
				Should(ContainElement(And(HavePrefix("C57"), ContainSubstring("its version of "+approvedOn),
					ContainSubstring("status of the response is 403"))))
		})

	DescribeTable("ends after a definite answer", func(ctx SpecContext, definite http.HandlerFunc, status int) {
		serve(challenged)
		Expect(ask(ctx)).To(unchecked())
		serve(definite)
		world.Clock.Advance(time.Minute)
		Expect(ask(ctx)).To(BeASafePage(status, "invalid_client"))
		serve(challenged)
		world.Clock.Advance(time.Minute)
		Expect(ask(ctx)).To(isRefused)
		world.Restart()
		Expect(ask(ctx)).To(isRefused)
		serve(good)
		Expect(ask(ctx).StatusCode).To(Equal(http.StatusOK))
	},
		Entry("404", statusOnly(http.StatusNotFound), http.StatusBadGateway),
		Entry("an invalid document", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"client_id":"https://other.example/c"}`))
		}), http.StatusBadRequest),
	)

	It("refuses a page instead of a document, but keeps the document", Label("C42"), func(ctx SpecContext) {
		serve(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/html") })
		Expect(ask(ctx)).To(isRefused)
		serve(challenged)
		Expect(ask(ctx)).To(unchecked())
	})

	It("ends thirty days after the last successful check", Label("I20"), func(ctx SpecContext) {
		serve(challenged)
		world.Clock.Advance(29*day - time.Minute)
		Expect(ask(ctx)).To(unchecked())
		world.Clock.Advance(time.Minute)
		Expect(ask(ctx)).To(isRefused)
	})

	It("refuses a redirect URI as soon as one fetch has returned a document without it",
		Label("A12"), func(ctx SpecContext) {
			serve(challenged)
			Expect(ask(ctx)).To(unchecked())
			client.lists("no-store", "https://client.example/new")
			world.Clock.Advance(time.Minute)
			Expect(ask(ctx)).To(BeASafePage(http.StatusBadRequest, "invalid_request"))
			serve(challenged)
			world.Clock.Advance(time.Minute)
			Expect(ask(ctx)).To(BeASafePage(http.StatusBadRequest, "invalid_request"))
		})

	It("goes on at a replica that has never fetched the document, unless another has seen it withdrawn",
		Label("C58", "I22"), func(ctx SpecContext) {
			askAt := func(replica *Replica) Response {
				return Get(ctx, replica.Address+"/oauth/authorize?"+client.Request().Encode())
			}
			serve(challenged)
			Expect(askAt(world.Replica())).To(unchecked())
			serve(statusOnly(http.StatusNotFound))
			Expect(ask(ctx)).To(isRefused)
			serve(challenged)
			Expect(askAt(world.Replica())).To(isRefused)
		})

	It("stores documents of approved clients only", Label("C58", "A34"), func(ctx SpecContext) {
		stranger := world.NewClient()
		stranger.Consent(ctx)
		Expect(world.Rows(ctx)["client_documents"]).To(ConsistOf(ContainSubstring(client.path())))
		stranger.Connect(ctx)
		Expect(world.Rows(ctx)["client_documents"]).
			To(ConsistOf(ContainSubstring(client.path()), ContainSubstring(stranger.path())))
	})
})

// reasons returns the reasons of all traced steps of this kind.
func (w *World) reasons(ctx context.Context, kind string) (reasons []string) {
	GinkgoHelper()
	connections, err := w.service.Authz.Trace(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, connection := range connections {
		for _, step := range connection.Steps {
			if string(step.Kind) == kind {
				reasons = append(reasons, strings.TrimSpace(step.Rule+" "+step.Reason))
			}
		}
	}
	return reasons
}

// uncheckedPage returns the consent page of a client whose document cannot be fetched again.
func uncheckedPage(ctx context.Context) Response {
	GinkgoHelper()
	client := NewWorld().NewClient()
	client.Consent(ctx)
	client.World.Clients.Serve(client.path(), challenged)
	client.World.Clock.Advance(time.Hour)
	return client.AskFor(ctx, client.Request())
}
