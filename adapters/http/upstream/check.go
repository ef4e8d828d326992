package upstream

import (
	"context"
	"net/http"

	"github.com/pasteport/pasteport/adapters/presentation"
	"github.com/pasteport/pasteport/adapters/probe"
	"github.com/pasteport/pasteport/domain/credential"
)

// Check asks the server with a key that no server has issued, or with the credential for all callers, and judges its answer (U31). It does not use or
// change the circuit breaker, whose subject is calls. After a good result, it sends no key first, because servers lock out addresses that send many
// wrong ones.
func (u *Upstream) Check(ctx context.Context, last probe.Result) probe.Result {
	if u.options.Credential.ofSender() && last.IsKnown() && last.Works() {
		if found := u.ask(ctx, presentation.Credentials{}); found.State != probe.Accepted && found.State != probe.Forbids {
			return found
		}
	}
	credentials, err := u.options.Credential.sample()
	if err != nil {
		return probe.Result{State: probe.NotChecked}
	}
	return u.options.Credential.judge(u.ask(ctx, credentials), u.options.VerifiesTokens)
}

func (u *Upstream) ask(ctx context.Context, credentials presentation.Credentials) probe.Result {
	asked := probe.Probe{Client: u.checks, URL: u.url.String(), Host: u.options.Host, Sign: func(r *http.Request, body []byte) {
		u.options.Credential.identify(r, &forwarding{body: body})
	}}
	answer, err := asked.Run(ctx, credentials, probe.Initialize)
	if err != nil {
		return probe.Result{State: probe.NotChecked}
	}
	return answer.Result
}

// newChecks returns the client of checks. It has a connection of its own, which open streams cannot hold.
func newChecks(o Options) *http.Client {
	return &http.Client{
		Transport:     o.Transport(1, idleLimit),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Check returns the same for all addresses: each is checked when a person connects.
func (r *Router) Check(context.Context, probe.Result) probe.Result {
	return probe.Result{State: probe.OfEachPerson}
}

func (h HostToken) sample() (presentation.Credentials, error) {
	return h.Presentation.Render(h.Presentation.Sample(probe.RandomKey))
}

func (HostToken) judge(found probe.Result, verifies bool) probe.Result {
	switch {
	case found.State == probe.Accepted && verifies:
		return probe.Result{State: probe.AcceptsAny}
	case found.State == probe.Accepted:
		return probe.Result{State: probe.ChecksNoKeys}
	}
	return found
}

func (None) sample() (presentation.Credentials, error) { return presentation.Credentials{}, nil }

func (None) judge(found probe.Result, _ bool) probe.Result {
	return refusal(found, probe.RequiresKey)
}

func (s Static) sample() (presentation.Credentials, error) {
	return s.Presentation.Render(credential.Values{credential.Token: s.Secret})
}

func (Static) judge(found probe.Result, _ bool) probe.Result {
	return refusal(found, probe.RefusesSecret)
}

// refusal names what a refused request means without a key of a person.
func refusal(found probe.Result, meaning probe.State) probe.Result {
	switch found.State {
	case probe.RefusesKeys:
		return probe.Result{State: meaning, Detail: "401"}
	case probe.Forbids:
		return probe.Result{State: meaning, Detail: "403"}
	}
	return found
}
