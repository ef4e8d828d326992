package upstream

import (
	"context"
	"net/http"

	"github.com/pasteport/pasteport/adapters/mcp/gateway/check"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
	"github.com/pasteport/pasteport/domain/credential"
)

// Check asks the server whether it works: with the credential for all callers, or without a key. A
// key that no server has issued is sent until the server has refused it, to find a server that
// accepts any, and not again, because servers lock out addresses that send many wrong keys.
func (u *Upstream) Check(ctx context.Context) check.Result {
	var credentials secret.Credentials
	known := u.acceptsAny.Load()
	sendsKey := !u.options.Credential.ofSender() || known == nil || *known
	if sendsKey {
		var err error
		if credentials, err = u.options.Credential.sample(); err != nil {
			return check.Unknown
		}
	}
	found := check.Probe{
		Client: u.checks,
		URL:    u.url.String(),
		Host:   u.options.Host,
		Sign: func(r *http.Request, body []byte) {
			u.options.Credential.identify(r, &forwarding{body: body})
		},
	}.Run(ctx, credentials)
	if found.State == check.Down || ctx.Err() != nil {
		return found
	}
	if sendsKey {
		acceptsAny := found.State == check.Works
		u.acceptsAny.Store(&acceptsAny)
	}
	return u.options.Credential.judge(found, *u.acceptsAny.Load(), u.proven.Load())
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

func (h HostToken) judge(found check.Result, acceptsAny, proven bool) check.Result {
	switch {
	case found.IsProblem():
	case acceptsAny && h.VerifiesKeys:
		return check.AcceptsAny
	case acceptsAny:
		found.Cause += ", accepts any key: only the verifier checks keys"
	case found.State == check.Refuses:
		found.Cause += ", sent " + h.sent()
		if h.Presentation.IsSet() && !proven {
			found.Cause += "; no key has shown yet that it reads keys there"
		}
	}
	return found
}

func (None) sample() (secret.Credentials, error) { return secret.Credentials{}, nil }

func (None) judge(found check.Result, _, _ bool) check.Result {
	if found.State == check.Refuses {
		return check.Mistake("it requires a key, but credential is none", "choose credential host-token or static")
	}
	return found
}

func (s Static) sample() (secret.Credentials, error) {
	return s.Presentation.Render(credential.Values{credential.Token: s.Secret})
}

func (s Static) judge(found check.Result, _, _ bool) check.Result {
	if found.State == check.Refuses {
		return check.Mistake(
			"it refuses the secret for all callers, sent "+s.sent(),
			"check upstream-secret and present",
		)
	}
	return found
}
