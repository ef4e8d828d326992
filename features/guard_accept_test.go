package features_test

import (
	"context"
	"encoding/json"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The Accept header of a client", Label("U22"), func() {
	worlds := map[string]func(ctx context.Context) *World{
		"a server in the process": func(context.Context) *World { return NewWorld() },
		"a program over stdio":    func(ctx context.Context) *World { return openProgram(ctx, nil) },
	}
	for where, open := range worlds {
		DescribeTable("selects the form of the answer of "+where, func(ctx SpecContext, accept []string, form string) {
			world := open(ctx)
			accepting := func(r *http.Request) {
				if r.Header.Del("Accept"); accept != nil {
					r.Header["Accept"] = accept
				}
			}
			talk := &Conversation{
				World:    world,
				Revision: sessions,
				Access:   world.NewClient().Connect(ctx).Access,
				target:   world.MCP(),
			}
			opened := talk.Post(ctx, "initialize", params{
				"protocolVersion": sessions, "capabilities": params{},
				"clientInfo": params{"name": "spec", "version": "1"},
			}, accepting)
			if form == "" {
				Expect(opened.StatusCode).To(Equal(http.StatusNotAcceptable))
				return
			}
			Expect(opened.StatusCode).To(Equal(http.StatusOK), opened.Text)
			talk.session = opened.Header.Get("Mcp-Session-Id")
			Expect(talk.Post(ctx, "notifications/initialized", nil, accepting).StatusCode).
				To(Equal(http.StatusAccepted))
			listed := talk.Post(ctx, "tools/list", params{}, accepting)
			for _, answer := range []Response{opened, listed} {
				Expect(answer.Header.Get("Content-Type")).To(Equal(form), answer.Text)
				if form == "application/json" {
					Expect(json.Valid([]byte(answer.Text))).To(BeTrue(), answer.Text)
				}
			}
			Expect(talk.read(listed).Tools()).NotTo(BeEmpty())
		},
			Entry("without one", nil, "text/event-stream"),
			Entry("with */*", []string{"*/*"}, "text/event-stream"),
			Entry("with a stream only", []string{"text/event-stream"}, "text/event-stream"),
			Entry("with JSON only", []string{"application/json"}, "application/json"),
			Entry("with both, in two headers", []string{"application/json", "text/event-stream"}, "text/event-stream"),
			Entry("with neither", []string{"text/html"}, ""),
		)
	}

	It("may name JSON only for a call without a session", func(ctx SpecContext) {
		world := NewWorld()
		talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		answer := talk.Post(ctx, "tools/list", params{}, with("Accept", "application/json"))
		Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
		Expect(answer.Header.Get("Content-Type")).To(Equal("application/json"))
		Expect(talk.read(answer).Tools()).NotTo(BeEmpty())
		refused := talk.Post(ctx, "subscriptions/listen", params{"notifications": params{}},
			with("Accept", "application/json"))
		Expect(refused.StatusCode).To(Equal(http.StatusNotAcceptable), "it is a stream")
	})
})
