package oauth

import (
	"slices"
	"strings"
	"time"
)

// IssuedCode is the State of a code that can be redeemed or withdrawn.
const IssuedCode = string(codeIssued)

// CodeSnapshot is an AuthorizationCode as a store keeps it. Bytes are nil, text is "" and times are
// zero where there is nothing. Times are UTC with milliseconds. Restoring applies no rule.
type CodeSnapshot struct {
	ID            string
	Version       int64 // for a store that compares and swaps: it increments Version with each change
	Digest        []byte
	CodeChallenge string
	ClientID      string
	ClientName    string
	AuthMethod    string
	RedirectURI   string
	Resource      string
	Scopes        string // separated by spaces
	Subject       string
	Account       string
	TokenID       string
	Roles         string // separated by line feeds
	State         string
	EndReason     string
	CreatedAt     time.Time
	ExpiresAt     time.Time
	GrantEnd      time.Time
	RedeemedAt    time.Time
	WithdrawnAt   time.Time
	ForgetAfter   time.Time
	HostPrint     []byte
	HostBox       []byte
	HostWrap      []byte
	HostKey       []byte // public half of the key pair of the data key
	HostNew       []byte // host token that replaced that of HostBox, sealed to HostKey
}

// HasKnownState reports whether this version knows the state.
func (s CodeSnapshot) HasKnownState() bool {
	return slices.Contains([]codeState{codeIssued, codeRedeemed, codeWithdrawn}, codeState(s.State))
}

// Snapshot returns the state of the code. Its bytes are shared with the code and must not be
// changed.
func (c *AuthorizationCode) Snapshot() CodeSnapshot {
	return CodeSnapshot{
		ID:            c.id,
		Version:       c.version,
		Digest:        c.digest[:],
		CodeChallenge: c.challenge.encoded,
		ClientID:      c.client.raw,
		ClientName:    c.clientName,
		AuthMethod:    string(c.authMethod),
		RedirectURI:   c.redirect.raw,
		Resource:      c.resource.canonical,
		Scopes:        c.scopes.String(),
		Subject:       c.subject,
		Account:       c.account,
		TokenID:       c.tokenID,
		Roles:         strings.Join(c.roles, "\n"),
		State:         string(c.state),
		EndReason:     string(c.endReason),
		CreatedAt:     c.createdAt,
		ExpiresAt:     c.expiresAt,
		GrantEnd:      c.grantEnd,
		RedeemedAt:    c.redeemedAt,
		WithdrawnAt:   c.withdrawnAt,
		ForgetAfter:   c.forgetAfter(),
		HostPrint:     c.hostPrint.Bytes(),
		HostBox:       c.host.box,
		HostWrap:      c.host.wrap,
		HostKey:       c.host.public,
		HostNew:       c.host.replacement,
	}
}

// RestoreCode rebuilds a code.
func RestoreCode(s CodeSnapshot) *AuthorizationCode {
	c := &AuthorizationCode{
		consent: consent{
			id:         s.ID,
			client:     RestoreClientID(s.ClientID),
			clientName: s.ClientName,
			authMethod: AuthMethod(s.AuthMethod),
			redirect:   RestoreRedirectURI(s.RedirectURI),
			resource:   NewResource(s.Resource),
			scopes:     restoreScopes(s.Scopes),
			subject:    s.Subject,
			account:    s.Account,
			tokenID:    s.TokenID,
			roles:      restoreRoles(s.Roles),
			createdAt:  s.CreatedAt,
		},
		version:     s.Version,
		challenge:   RestoreCodeChallenge(s.CodeChallenge),
		state:       codeState(s.State),
		endReason:   EndReason(s.EndReason),
		expiresAt:   s.ExpiresAt,
		grantEnd:    s.GrantEnd,
		redeemedAt:  s.RedeemedAt,
		withdrawnAt: s.WithdrawnAt,
		host:        sealedHostToken{s.HostBox, s.HostWrap, s.HostKey, s.HostNew},
	}
	copy(c.digest[:], s.Digest)
	copy(c.hostPrint[:], s.HostPrint)
	return c
}
