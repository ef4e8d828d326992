package upstream

import (
	"context"
	"net/http"

	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/check"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Check asks the server whether it works: with the credential for all callers, or without a key. A
// key that no server has issued is sent until the server has refused it, to find a server that
// accepts any, and not again, because servers lock out addresses that send many wrong keys.
func (u *Upstream) Check(ctx context.Context) check.Result {
	var presented secret.Credentials
	var err error
	known := u.acceptsAny.Load()
	sendsRandom := u.isOfSender() && (known == nil || *known)
	switch {
	case sendsRandom:
		presented, err = u.presentation.Render(u.config.HostFields.Sample(check.RandomKey))
	case !u.isOfSender():
		presented, _, err = u.credentials(oauth.HostToken{})
	}
	if err != nil {
		return check.Unknown
	}
	found := check.Probe{
		Client: u.checks,
		URL:    u.url.String(),
		Host:   u.config.Host,
		Sign:   func(r *http.Request, body []byte) { u.identify(r, oauth.Caller{}, body) },
	}.Run(ctx, presented)
	switch {
	case found.State == check.Down || ctx.Err() != nil, !u.isOfSender() && found.State != check.Refuses:
		return found
	case u.config.Credential == gateway.CredentialNone:
		return check.Mistake("it requires a key, but credential is none", "choose credential host-token or static")
	case !u.isOfSender():
		return check.Mistake("it refuses the secret for all callers, sent "+u.presentation.Sent(),
			"check upstream-secret and present")
	case sendsRandom:
		acceptsAny := found.State == check.Works
		u.acceptsAny.Store(&acceptsAny)
	}
	acceptsAny := *u.acceptsAny.Load()
	switch { // what it means for calls with the keys of people
	case found.IsProblem():
	case acceptsAny && u.config.VerifiesTokens:
		return check.AcceptsAny
	case acceptsAny:
		found.Cause += ", accepts any key: only the verifier checks keys"
	case found.State == check.Refuses:
		found.Cause += ", sent " + u.presentation.Sent()
		if u.presentation.IsSet() && !u.proven.Load() {
			found.Cause += "; no key has shown yet that it reads keys there"
		}
	}
	return found
}
