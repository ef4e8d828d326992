package application

import (
	"context"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/quota"
)

// Pasted is the host token of a submitted form.
type Pasted struct {
	Token    string
	Fields   map[string]string // instead of Token, if the site asks for several
	Reviewed string            // of an oauth.ToolReview, which contains the token
	By       quota.Requester
}

// parsePasted parses the token or the fields from the form of a ticket.
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
	err = s.enterLane(ctx, guess, host, func(ctx context.Context) error {
		principal, err = s.guardFor(resource).verifyPasted(ctx, host)
		principal, err = s.withSubject(principal, err, host, "")
		return err
	})
	return principal, err
}

// enterLane waits for the lane of a guess, and reports to it what check has found. A client that
// hangs up does not cancel the check, or it could have tokens checked without being counted.
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
	checking := context.WithoutCancel(ctx)
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

// verifyAgain verifies the host token of a grant whose subject is previous.
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
	return s.withSubject(principal, nil, host, previous)
}

// withSubject sets a missing subject: the previous one of a grant, which neither a new server
// secret nor a replaced host token changes, or that of oauth.KeyedSubject.
func (s *core) withSubject(principal oauth.Principal, err error, host oauth.HostToken,
	previous string) (oauth.Principal, error) {
	if err != nil || principal.Subject != "" {
		return principal, err
	}
	if principal.Subject = previous; previous != "" {
		return principal, nil
	}
	principal.Subject, err = oauth.KeyedSubject(s.Settings.Identity(host), s.Settings.Keys)
	return principal, err
}
