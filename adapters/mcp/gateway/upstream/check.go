package upstream

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/pasteport/pasteport/adapters/mcp/gateway/check"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
	"github.com/pasteport/pasteport/domain/credential"
)

// Check asks the server with a key that no server has issued, or with the credential for all
// callers, and judges its answer. It does not use or change the circuit breaker, whose subject is
// calls. After the first check it sends such a key only if it cannot find out more without one,
// because servers lock out addresses that send many wrong keys.
func (u *Upstream) Check(ctx context.Context, last check.Result) check.Result {
	began := time.Now()
	found := u.check(ctx, last)
	if found != last {
		found = u.described(found)
	}
	if !errors.Is(ctx.Err(), context.Canceled) { // a check that was given up has no result
		u.calls.checked(began, found)
	}
	return found
}

func (u *Upstream) check(ctx context.Context, last check.Result) check.Result {
	if u.options.Credential.ofSender() && last.IsKnown() && u.withKey.Load() != check.ChecksNoKeys {
		found := u.ask(ctx, secret.Credentials{})
		before := u.withoutKey.Swap(found.State)
		switch {
		case found.State == last.State, found.State == check.RefusesKeys && u.withKey.Load() != nil, found.IsOutage():
			return found
		case found.State == before && !last.IsOutage(): // last is what it answered to a key then
			return last
		}
	}
	credentials, err := u.options.Credential.sample()
	if err != nil {
		return check.Unknown
	}
	found := u.options.Credential.judge(u.ask(ctx, credentials))
	if !found.IsOutage() {
		u.withKey.Store(found.State)
	}
	return found
}

func (u *Upstream) ask(ctx context.Context, credentials secret.Credentials) check.Result {
	asked := check.Probe{
		Client: u.checks,
		URL:    u.url.String(),
		Host:   u.options.Host,
		Sign: func(r *http.Request, body []byte) {
			u.options.Credential.identify(r, &forwarding{body: body})
		},
	}
	answer, err := asked.Run(ctx, credentials, check.Initialize)
	if err != nil {
		return check.Unknown
	}
	return answer.Result
}

// described adds what a refusal of keys reveals: how the key was sent, and OAuth of the server
// itself, whose challenge names it.
func (u *Upstream) described(found check.Result) check.Result {
	own := &url.URL{}
	if resource, err := url.Parse(u.options.Resource.String()); err == nil {
		own = resource
	}
	metadata, err := url.Parse(found.Metadata)
	switch named := err == nil && metadata.Host != ""; {
	case named && metadata.Scheme == own.Scheme && metadata.Host == own.Host:
		return check.IsGateway
	case named && found.State == check.RefusesKeys:
		return check.HasOAuth
	}
	if sent := u.options.Credential.sent(); sent != "" && (found.State == check.RefusesKeys ||
		found.State == check.Forbids) {
		found.Cause += ", sent " + sent
		if key, ok := u.options.Credential.(HostToken); ok && key.Presentation.IsSet() && !u.proven.Load() {
			found.Cause += "; no key has shown yet that it reads keys there"
		}
	}
	return found
}

// newChecks returns the client of checks. It has its own connection, which open streams cannot
// hold.
func newChecks(o Options) *http.Client {
	return &http.Client{
		Transport:     o.Transport(1, idleLimit),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (h HostToken) sample() (secret.Credentials, error) {
	return h.Presentation.Render(h.Presentation.Sample(check.RandomKey))
}

func (h HostToken) sent() string { return h.Presentation.Sent() }

func (None) sent() string { return "" }

func (s Static) sent() string { return s.Presentation.Sent() }

func (HostToken) judge(found check.Result) check.Result {
	if found.State == check.Accepted {
		return check.AnyKey
	}
	return found
}

func (None) sample() (secret.Credentials, error) { return secret.Credentials{}, nil }

func (None) judge(found check.Result) check.Result {
	return refusal(found, check.RequiresKey)
}

func (s Static) sample() (secret.Credentials, error) {
	return s.Presentation.Render(credential.Values{credential.Token: s.Secret})
}

func (s Static) judge(found check.Result) check.Result {
	return refusal(found, func(status string) check.Result { return check.RefusesSecret(status, s.sent()) })
}

// refusal returns what a refused request means without a key of a person.
func refusal(found check.Result, meaning func(status string) check.Result) check.Result {
	switch found.State {
	case check.RefusesKeys:
		refused := meaning("401")
		refused.Metadata = found.Metadata
		return refused
	case check.Forbids:
		return meaning("403")
	}
	return found
}
