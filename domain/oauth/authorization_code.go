package oauth

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/uri"
)

// redeemedCodeRetention is how long a redeemed code stays on record, so that a replay is detected.
const redeemedCodeRetention = 24 * time.Hour

// AuthorizationCode is the code for a person's consent (RFC 6749 §4.1.2). The client redeems it
// once, with the code verifier (RFC 7636), for an AccessGrant.
type AuthorizationCode struct {
	consent
	digest      Digest
	challenge   codeChallenge
	expiresAt   time.Time
	grantEnd    time.Time // when the grant ends at the latest
	redeemedAt  time.Time
	withdrawnAt time.Time
}

// Approval is a person's consent: the ticket of the consent page with what the person has chosen,
// the verified host token with its principal, and the code to issue.
type Approval struct {
	Ticket    *Ticket
	Choice    *Choice // nil for all that the ticket requests
	Host      HostToken
	Principal Principal
	Code      Secret
	Random    io.Reader // source of the data key of the sealed host token
}

// IssueCode issues the code of an approval. It refuses with AccessDenied, and like CheckChoice.
func IssueCode(a Approval, settings *Settings, now time.Time) (*AuthorizationCode, error) {
	request := a.Ticket.request
	if err := request.CheckChoice(a.Choice); err != nil {
		return nil, err
	}
	scopes := request.Chosen(a.Choice).Intersect(settings.ceiling(a.Principal, request.Resource))
	if scopes.Without(OfflineAccess).Empty() {
		return nil, Refuse(AccessDenied, "B10", "the token may not grant what the client asks for")
	}
	print, err := settings.Keys.Fingerprint(settings.Identity(a.Host))
	if err != nil {
		return nil, err
	}
	lifetime := settings.LongestGrant()
	if a.Choice != nil {
		lifetime = cmp.Or(a.Choice.Lifetime, lifetime)
	}
	c := &AuthorizationCode{
		consent: consent{
			id:        a.Ticket.id,
			client:    Client{ID: request.Client.ID, Name: request.Client.Name, AuthMethod: request.Client.AuthMethod},
			redirect:  request.RedirectURI,
			resource:  request.Resource,
			scopes:    scopes,
			subject:   a.Principal.Subject,
			account:   a.Principal.Name,
			tokenID:   a.Principal.TokenID,
			roles:     slices.Clone(a.Principal.Roles),
			createdAt: now,
			hostPrint: print,
			state:     codeIssued,
		},
		digest:    a.Code.Digest(),
		challenge: request.challenge,
		expiresAt: now.Add(settings.AuthCodeTTL),
		grantEnd:  now.Add(lifetime),
	}
	if !scopes.Has(OfflineAccess) && !settings.accessTokensUnseal() { // no token of the grant could open it
		return c, nil
	}
	c.host, err = sealHostToken(a.Host, a.Code, c.id, a.Random, settings.Keys)
	return c, err
}

// Supersedes returns nil if the code of a second approval of one ticket replaces the earlier code.
// It returns ErrCodeStillValid if both have the same value and the earlier code has not expired,
// and refuses with UsedTicket if the earlier code was redeemed or withdrawn.
func (c *AuthorizationCode) Supersedes(earlier *AuthorizationCode) error {
	switch {
	case earlier.state != codeIssued:
		return Refuse(UsedTicket, "B13", "this form has been used already")
	case earlier.digest == c.digest && !expired(earlier.expiresAt, c.createdAt):
		return ErrCodeStillValid
	}
	return nil
}

// Redemption is a client's request to exchange a code, with the fresh secrets for the answer.
type Redemption struct {
	Client      string
	Code        Secret
	Verifier    string
	RedirectURI string // optional, because PKCE binds the code to the client
	Resources   []string
	Scope       string
	Signed      bool // the client has authenticated with an assertion
	Fresh       FreshEntropy
}

// codeRetryWindow is the time after a redemption in which the same request counts as a retry, for
// example by a proxy, and not as a replay.
const codeRetryWindow = 10 * time.Second

// MayRedeem checks everything that Redeem checks, except that a key opens the sealed host token.
// The cause of a second redemption is ErrRetried within codeRetryWindow, and later ErrReplayed,
// after which the caller ends the grant.
func (c *AuthorizationCode) MayRedeem(by Redemption, settings *Settings, now time.Time) error {
	switch {
	case c.state == codeWithdrawn:
		return refuseGrant("D21", errors.New("the code was withdrawn: "+string(c.endReason)))
	case !settings.protects(c.resource), c.digest != by.Code.Digest():
		return refuseGrant("D12", errors.New("it is not a code of this server"))
	case c.client.ID.raw != by.Client:
		return refuseGrant("D13", errors.New("it belongs to another client"))
	case by.RedirectURI != "" && by.RedirectURI != c.redirect.raw:
		return refuseGrant("D15", fmt.Errorf("the redirect_uri is not the one of the authorization request: %w",
			uri.Mismatch(by.RedirectURI, c.redirect.raw)))
	case !c.challenge.verifiedBy(by.Verifier):
		return refuseGrant("D16", errors.New("the code_verifier does not fit the code_challenge"))
	case c.state == codeRedeemed && now.Sub(c.redeemedAt) <= codeRetryWindow:
		return refuseGrant("D19", ErrRetried)
	case c.state == codeRedeemed:
		return refuseGrant("D19", ErrReplayed)
	case expired(c.expiresAt, now):
		return refuseGrant("D14", errors.New("the code has expired"))
	}
	if err := c.resource.accepts(by.Resources); err != nil {
		return err
	}
	_, err := c.narrowed(by.Scope)
	return err
}

// Redeem redeems the code and creates its grant. After a refusal the code is unchanged.
func (c *AuthorizationCode) Redeem(by Redemption, settings *Settings, now time.Time) (*AccessGrant, *Tokens, error) {
	if err := c.MayRedeem(by, settings, now); err != nil {
		return nil, nil, err
	}
	scopes, err := c.narrowed(by.Scope)
	if err != nil {
		return nil, nil, err
	}
	grant, tokens, err := openGrant(c, by, scopes, settings, now)
	switch {
	case errors.Is(err, ErrHostTokenLost):
		return nil, nil, refuseGrant("J4", err)
	case err != nil:
		return nil, nil, err
	}
	c.state, c.redeemedAt, c.host, c.client.AuthMethod = codeRedeemed, now, sealedHostToken{}, grant.client.AuthMethod
	return grant, tokens, nil
}

// narrowed returns the scopes for a code exchange: the granted scopes that the request repeats, or
// all when it names none.
func (c *AuthorizationCode) narrowed(scope string) (Scopes, error) {
	requested, err := ParseScopes(scope)
	if err != nil || requested.Empty() {
		return c.scopes, err
	}
	kept := c.scopes.Intersect(requested)
	switch {
	case kept.Empty():
		return Scopes{}, Refuse(InvalidScope, "D18", "none of the requested scopes was granted")
	case kept.Without(OfflineAccess).Empty(): // OfflineAccess alone permits nothing
		return c.scopes, nil
	}
	return kept, nil
}

// End withdraws a code that is not redeemed.
func (c *AuthorizationCode) End(reason EndReason, now time.Time) (wasActive bool) {
	if c.state != codeIssued {
		return false
	}
	wasActive = c.active(now)
	c.state, c.endReason, c.withdrawnAt, c.host = codeWithdrawn, reason, now, sealedHostToken{}
	return wasActive
}

// ExpiresAt returns the end of the time in which the code can be redeemed.
func (c *AuthorizationCode) ExpiresAt() time.Time { return c.expiresAt }

func (c *AuthorizationCode) active(now time.Time) bool {
	return c.state == codeIssued && !expired(c.expiresAt, now)
}

// Connection implements Authorization.
func (c *AuthorizationCode) Connection(now time.Time) (shown Connection, active bool) {
	shown = c.connection()
	shown.Waiting, shown.EndsBy, shown.EndsAtLatest = true, c.expiresAt, c.grantEnd
	return shown, c.active(now)
}

// forgetAfter returns when the code may be deleted. A code that was withdrawn for the limit is kept
// no longer than one that expired, because one host token can get any number of them.
func (c *AuthorizationCode) forgetAfter() time.Time {
	switch {
	case c.state == codeRedeemed:
		return c.redeemedAt.Add(redeemedCodeRetention)
	case c.state == codeWithdrawn && c.endReason != EndedByLimit:
		return c.withdrawnAt.Add(endedGrantRetention)
	}
	return c.expiresAt
}

// refuseGrant returns the same refusal for every code or refresh token that cannot be used.
func refuseGrant(rule string, cause error) error {
	return Refuse(InvalidGrant, rule, "The code or refresh token is invalid, expired or already used", cause)
}

// RefuseUnknownGrant refuses a code or refresh token that is not in the store.
func RefuseUnknownGrant() error { return refuseGrant("D12, D22", errors.New("it is unknown")) }

// codeChallenge is the S256 challenge of RFC 7636.
type codeChallenge struct{ encoded string }

// parseCodeChallenge accepts S256 only and refuses with InvalidRequest.
func parseCodeChallenge(challenge, method string) (codeChallenge, error) {
	switch {
	case challenge == "":
		return codeChallenge{}, Refuse(InvalidRequest, "A19", "the code_challenge is missing")
	case method != "S256":
		return codeChallenge{}, Refuse(InvalidRequest, "A20", "the code_challenge_method has to be S256")
	}
	if _, ok := decode32(challenge); !ok {
		return codeChallenge{},
			Refuse(InvalidRequest, "A21", "the code_challenge is not the base64url form of a SHA-256")
	}
	return codeChallenge{challenge}, nil
}

// decode32 reads 43 characters of unpadded base64url as 32 bytes. It checks for line breaks itself
// because Go's decoder skips them, even when strict.
func decode32(encoded string) (decoded [32]byte, ok bool) {
	if len(encoded) != 43 || strings.ContainsAny(encoded, "\r\n") {
		return decoded, false
	}
	_, err := base64.RawURLEncoding.Strict().Decode(decoded[:], []byte(encoded))
	return decoded, err == nil
}

const (
	minVerifierLength  = 43
	maxVerifierLength  = 128
	verifierCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
)

// verifiedBy reports whether verifier is well-formed and hashes to the challenge (RFC 7636 §4.6).
func (c codeChallenge) verifiedBy(verifier string) bool {
	if len(verifier) < minVerifierLength || len(verifier) > maxVerifierLength ||
		strings.Trim(verifier, verifierCharacters) != "" { // it has another character
		return false
	}
	challenge, ok := decode32(c.encoded)
	proof := sha256.Sum256([]byte(verifier))
	return ok && subtle.ConstantTimeCompare(proof[:], challenge[:]) == 1
}
