package application

import (
	"cmp"
	"context"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/quota"
)

// Pasted is the host token of a submitted form.
type Pasted struct {
	Token    string
	Fields   map[string]string // instead of Token, if the site asks for several
	Reviewed string            // instead of both: oauth.ToolReview.Sealed, which contains the token
	By       quota.Requester   // who has sent the form
}

// parsePasted returns the host token of the form with this ticket, "" for the connections page.
func (s *core) parsePasted(pasted Pasted, ticket string, fields credential.Fields) (oauth.HostToken, error) {
	if pasted.Reviewed != "" {
		reviewed, err := oauth.OpenToolReview(pasted.Reviewed, ticket, s.Settings, s.now())
		return reviewed.Host, err
	}
	if len(fields) == 0 {
		return oauth.ParseHostToken(pasted.Token)
	}
	return parseHost(fields, pasted.Fields)
}

// check waits for the lane of a guess, and verifies the token with the verifier of the resource.
func (s *core) check(ctx context.Context, guess quota.Guess, resource oauth.Resource,
	host oauth.HostToken) (principal oauth.Principal, err error) {
	guess.Resource = resource.String()
	err = s.enterLane(ctx, guess, host, func(ctx context.Context) (err error) {
		if principal, err = s.guardFor(resource).verifyPasted(ctx, host); err == nil {
			principal, err = s.withSubject(principal, host, "")
		}
		return err
	})
	return principal, err
}

// enterLane waits for the lane of a guess, calls check and reports its result to the lane. A client
// that hangs up does not cancel check, or it could have tokens checked without being counted.
func (s *core) enterLane(ctx context.Context, guess quota.Guess, host oauth.HostToken,
	check func(context.Context) error) (err error) {
	if guess.Token, err = s.Settings.Keys.Fingerprint(host); err != nil {
		return err
	}
	leave, err := s.ports.Lanes.Enter(ctx, guess)
	if err != nil {
		return err
	}
	result := quota.Undecided
	defer func() { leave(result) }()
	checking := context.WithoutCancel(ctx) // which drops the deadline, too
	if deadline, has := ctx.Deadline(); has {
		var cancel context.CancelFunc
		checking, cancel = context.WithDeadline(checking, deadline)
		defer cancel()
	}
	err = check(checking)
	switch kind, _ := oauth.KindOf(err); {
	case err == nil:
		result = quota.Right
	case kind == oauth.WrongHostToken:
		result = quota.Wrong
	}
	return err
}

// verifyAgain verifies a host token without a lane. previous is the subject of its grant, "" for a
// direct token.
func (s *core) verifyAgain(ctx context.Context, resource oauth.Resource, host oauth.HostToken,
	previous string) (oauth.Principal, error) {
	principal, err := s.guardFor(resource).verify(ctx, host, func() {})
	if err != nil {
		return principal, err
	}
	print, err := s.Settings.Keys.Fingerprint(host)
	if err != nil {
		return principal, err
	}
	s.ports.Lanes.Remember(print, resource.String())
	return s.withSubject(principal, host, previous)
}

// withSubject sets a missing subject: to previous if the grant has one, and otherwise to
// oauth.KeyedSubject, which another server secret or host token would change.
func (s *core) withSubject(principal oauth.Principal, host oauth.HostToken, previous string) (oauth.Principal, error) {
	if principal.Subject = cmp.Or(principal.Subject, previous); principal.Subject != "" {
		return principal, nil
	}
	keyed, err := oauth.KeyedSubject(s.Settings.Identity(host), s.Settings.Keys)
	principal.Subject = keyed
	return principal, err
}
