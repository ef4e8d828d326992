package features_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Traced is a connection in the JSON of the admin listener.
type Traced struct {
	ID      string       `json:"id"`
	Client  string       `json:"client_id"`
	Network string       `json:"network"`
	Agent   string       `json:"user_agent"`
	Doctor  bool         `json:"doctor"`
	State   string       `json:"state"`
	Missing string       `json:"missing"`
	Verdict string       `json:"verdict"`
	Hint    string       `json:"hint"`
	Steps   []TracedStep `json:"steps"`
}

// TracedStep is one step of a connection.
type TracedStep struct {
	Step    string    `json:"step"`
	At      time.Time `json:"at"`
	Outcome string    `json:"outcome"`
	Request string    `json:"request"`
	Rule    string    `json:"rule"`
	Reason  string    `json:"reason"`
}

// Path returns the names of the steps, with the outcome of failed ones.
func (t Traced) Path() string {
	var path []string
	for _, step := range t.Steps {
		name := step.Step
		if step.Outcome != "ok" {
			name += ":" + step.Outcome
		}
		path = append(path, name)
	}
	return strings.Join(path, " ")
}

func (t Traced) Last() TracedStep { return t.Steps[len(t.Steps)-1] }

// Traces returns every connection, newest first.
func (o *Operated) Traces(ctx context.Context) []Traced {
	GinkgoHelper()
	answer := o.AskAdmin(ctx, "/connections.json")
	Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
	var traces []Traced
	Expect(json.Unmarshal([]byte(answer.Text), &traces)).To(Succeed(), answer.Text)
	return traces
}

// Newest waits until the newest connection has this path, because steps are written asynchronously,
// and returns it.
func (o *Operated) Newest(ctx context.Context, path string) (newest Traced) {
	GinkgoHelper()
	Eventually(func() string {
		if traces := o.Traces(ctx); len(traces) > 0 {
			newest = traces[0]
			return newest.Path()
		}
		return ""
	}).WithContext(ctx).WithTimeout(patience).Should(Equal(path))
	return newest
}

// Discover sends the first requests of a client that has only the URL.
func (o *Operated) Discover(ctx context.Context) {
	GinkgoHelper()
	o.Call(ctx, "")
	Get(ctx, o.Issuer+"/.well-known/oauth-protected-resource/mcp")
	Get(ctx, o.Issuer+"/.well-known/oauth-authorization-server")
}

// Story is the trace of a connection as the operator sees it.
type Story struct{ Path, State, Says string }

// Stories returns all connections of the world, newest first.
func (w *World) Stories(ctx context.Context) []Story {
	GinkgoHelper()
	connections := must(w.service.Authz.Trace(ctx))
	stories := make([]Story, 0, len(connections))
	for _, connection := range connections {
		var path []string
		for _, step := range connection.Steps {
			name := string(step.Kind)
			if step.Outcome != "ok" {
				name += ":" + string(step.Outcome)
			}
			path = append(path, name)
		}
		stories = append(stories,
			Story{strings.Join(path, " "), string(connection.State), connection.Verdict + " " + connection.Hint})
	}
	return stories
}

const wholeWay = "authorize client_metadata page token_judged code_issued exchange call"
