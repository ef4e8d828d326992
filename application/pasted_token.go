package application

import (
	"context"
	"time"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Pasted is the host token of a submitted form, or a proof of work that contains it.
type Pasted struct {
	Token        string
	Fields       map[string]string // instead of Token, if the site asks for several
	Proof, Nonce string
	Reviewed     string // of an oauth.ToolReview, which contains the token
	By           oauth.Requester
}

// queueFullWait is the Retry-After while the queue is full.
const queueFullWait = time.Second

// attempt is a guess and its token.
type attempt struct {
	oauth.Guess
	host   oauth.HostToken
	failed *oauth.Proof // an unsolved proof, to be demanded again; nil for none

	isDirect bool // of a client, which cannot do a proof of work
}

// verifiedToken is a pasted token that the verifier accepts.
type verifiedToken struct {
	host      oauth.HostToken
	principal oauth.Principal
	attempt   *attempt
	release   func() // frees the slot, after the second verification; it may be called twice
}

// checkPasted verifies the token within the limits on wrong tokens. The caller must call
// release.
func (s *Server) checkPasted(ctx context.Context, ticket *oauth.Ticket, pasted Pasted) (*verifiedToken, error) {
	resource := ticket.Request().Resource()
	a, err := s.newAttempt(pasted, ticket.ID(), s.settings.HostFields)
	if err != nil {
		return nil, err
	}
	a.Resource = resource.String()
	principal, release, err := s.checkAttempt(ctx, resource, a)
	if err != nil {
		return nil, err
	}
	return &verifiedToken{a.host, principal, a, release}, nil
}

// checkAttempt is checkPasted for an attempt.
func (s *Server) checkAttempt(ctx context.Context, resource oauth.Resource, a *attempt) (oauth.Principal, func(),
	error) {
	if err := s.admitAttempt(ctx, a); err != nil {
		return oauth.Principal{}, nil, err
	}
	release, err := s.acquireAdmitted(ctx, resource, a)
	if err != nil {
		s.ports.Guesses.RecordResult(ctx, a.Guess, oauth.GuessUndecided, s.now())
		return oauth.Principal{}, nil, err
	}
	// The verification ignores a canceled request: a client that hangs up could otherwise have
	// tokens verified without being counted.
	principal, err := s.verify(context.WithoutCancel(ctx), resource, a.host)
	s.ports.Guesses.RecordResult(ctx, a.Guess, resultOf(err), s.now())
	if err != nil {
		release()
		return oauth.Principal{}, nil, err
	}
	return principal, release, nil
}

// acquireAdmitted waits for a slot and admits the attempt again if it had to wait, because wrong
// tokens of others may have been counted since. Attempts with weak tokens are counted at admission,
// and are not admitted twice.
func (s *Server) acquireAdmitted(ctx context.Context, resource oauth.Resource, a *attempt) (release func(), err error) {
	release, waited, err := s.acquireSlot(ctx, s.guardFor(resource).slots, a)
	if err != nil || !waited || s.settings.Limits.WeakTokens {
		return release, err
	}
	if err := s.admitAttempt(ctx, a); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

func resultOf(err error) oauth.GuessResult {
	kind, _ := oauth.KindOf(err)
	switch {
	case err == nil:
		return oauth.GuessRight
	case kind == oauth.WrongHostToken:
		return oauth.GuessWrong
	}
	return oauth.GuessUndecided
}

// newAttempt parses the token, the fields or the proof from the form of a ticket; ticket is "" for
// the connections page.
func (s *Server) newAttempt(pasted Pasted, ticket string, fields credential.Fields) (*attempt, error) {
	a := &attempt{Guess: oauth.Guess{By: pasted.By, Ticket: ticket}}
	var err error
	switch {
	case pasted.Proof != "":
		err = s.readProof(a, pasted)
	case pasted.Reviewed != "":
		var reviewed oauth.ReviewedTools
		reviewed, err = oauth.OpenToolReview(pasted.Reviewed, ticket, s.settings, s.now())
		a.host = reviewed.Host
	case len(fields) > 0:
		a.host, err = oauth.ParseHostFields(fields, func(name string) string { return pasted.Fields[name] })
	default:
		a.host, err = oauth.ParseHostToken(pasted.Token)
	}
	if err == nil {
		a.Token, err = s.settings.Keys.Fingerprint(a.host)
	}
	return a, err
}

// readProof takes the token from a proof. A proof counts once.
func (s *Server) readProof(a *attempt, pasted Pasted) error {
	now := s.now()
	proof, err := oauth.OpenProof(pasted.Proof, a.Ticket, s.settings, now)
	if err != nil {
		return err
	}
	a.host = proof.Host
	if !proof.Solved(pasted.Nonce) &&
		!(proof.Waited(now) && s.ports.Guesses.AdmitAfterWait(a.By, proof.Digest(), now)) {
		a.failed = proof
		return nil
	}
	a.Proven = s.ports.Guesses.UseProof(proof.Digest())
	return nil
}

// admitAttempt refuses with WrongHostToken for a token that the verifier has just refused, and with
// TooManyGuesses beyond the limits. A token with active grants has a separate limit. It looks up
// the grants only when the limits of the network are reached, at a limited rate.
func (s *Server) admitAttempt(ctx context.Context, a *attempt) error {
	now := s.now()
	admission, err := s.ports.Guesses.Admit(ctx, a.Guess, now)
	if err == nil && admission.NeedsProof && !a.HasGrants && s.ports.Guesses.MayLookUp(a.By, now) {
		a.HasGrants, err = s.holdsGrants(ctx, a.host)
		if err == nil && a.HasGrants {
			admission, err = s.ports.Guesses.Admit(ctx, a.Guess, now)
		}
	}
	switch {
	case err != nil:
		return err
	case admission.KnownWrong:
		return oauth.Refuse(oauth.WrongHostToken, "B8", "the site did not know this token a moment ago")
	case admission.NeedsProof && a.isDirect:
		s.ports.Limited.Observe(oauth.LimitWrongTokens, oauth.LimitRefused)
		return oauth.RefuseFor(s.settings.Limits.ProofWait, oauth.TooManyGuesses, "B6", "too many wrong tokens")
	case admission.NeedsProof:
		s.ports.Limited.Observe(oauth.LimitWrongTokens, oauth.LimitSlowed)
		return s.demandProof(a, now)
	case admission.Wait > 0:
		s.ports.Limited.Observe(oauth.LimitWrongTokens, oauth.LimitRefused)
		return oauth.RefuseFor(admission.Wait, oauth.TooManyGuesses, "B6", "too many wrong tokens")
	}
	return nil
}

// demandProof repeats an unmet demand, so that its wait does not start again.
func (s *Server) demandProof(a *attempt, now time.Time) error {
	if a.failed != nil {
		return a.failed.Demand(now)
	}
	return oauth.NewProofDemand(a.host, a.Ticket, s.settings, now)
}

// holdsGrants reports whether the token has active grants.
func (s *Server) holdsGrants(ctx context.Context, host oauth.HostToken) (bool, error) {
	prints, err := s.settings.Fingerprints(host)
	if err != nil {
		return false, err
	}
	now := s.now()
	for _, print := range prints {
		found, err := s.store.AuthorizationsOf(ctx, print)
		if err != nil {
			return false, err
		}
		if len(found.Connections(s.settings, now)) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// verify verifies a pasted token with the verifier of the resource.
func (s *Server) verify(ctx context.Context, resource oauth.Resource, host oauth.HostToken) (oauth.Principal, error) {
	principal, err := s.guardFor(resource).verifyPasted(ctx, host)
	return s.withSubject(principal, err, host, "")
}

// verifyAgain verifies the host token of a grant whose subject is previous.
func (s *Server) verifyAgain(ctx context.Context, resource oauth.Resource, host oauth.HostToken,
	previous string) (oauth.Principal, error) {
	principal, err := s.guardFor(resource).verifyGranted(ctx, host)
	return s.withSubject(principal, err, host, previous)
}

// withSubject sets a missing subject: the previous one of a grant, which neither a new server
// secret nor a replaced host token changes, or that of oauth.KeyedSubject.
func (s *Server) withSubject(principal oauth.Principal, err error, host oauth.HostToken,
	previous string) (oauth.Principal, error) {
	if err != nil || principal.Subject != "" {
		return principal, err
	}
	if principal.Subject = previous; previous != "" {
		return principal, nil
	}
	principal.Subject, err = oauth.KeyedSubject(s.settings.Identity(host), s.settings.Keys)
	return principal, err
}
