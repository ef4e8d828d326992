package application

import (
	"context"
	"time"

	"github.com/pasteport/pasteport/domain/fairqueue"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Pasted is what a person has sent with a form: a host token, or a proof of work that contains the token.
type Pasted struct {
	Token        string
	Proof, Nonce string
	By           oauth.Requester
}

// queueFullWait is the wait of a refusal because too many tokens wait for their check.
const queueFullWait = time.Second

// attempt is a guess with its token.
type attempt struct {
	oauth.Guess
	host   oauth.HostToken
	failed *oauth.Proof // a proof that is not solved, to be demanded again; nil for none
}

// checked is a pasted token that the verifier knows.
type checked struct {
	host      oauth.HostToken
	principal oauth.Principal
	place     *fairqueue.Place // held until the token is checked again
}

// checkPasted checks the token with the verifier, within the limits on wrong tokens (B6, B18, B20). The caller leaves the place.
func (s *Server) checkPasted(ctx context.Context, ticket *oauth.Ticket, pasted Pasted) (*checked, error) {
	resource := ticket.Request().Resource()
	a, err := s.attemptOf(pasted, ticket.ID())
	if err != nil {
		return nil, err
	}
	a.Resource = resource.String()
	if err := s.admitAttempt(ctx, a); err != nil {
		return nil, err
	}
	place, err := s.enterAdmitted(ctx, resource, a)
	if err != nil {
		s.ports.Guesses.Settle(ctx, a.Guess, oauth.Undecided, s.now())
		return nil, err
	}
	// A check that has begun goes on when the client hangs up, because a client could otherwise have tokens checked without limit.
	principal, err := s.verify(context.WithoutCancel(ctx), resource, a.host)
	s.ports.Guesses.Settle(ctx, a.Guess, outcomeOf(err), s.now())
	if err != nil {
		place.Leave()
		return nil, err
	}
	return &checked{a.host, principal, place}, nil
}

// enterAdmitted admits the attempt once more if it has waited, because others may have pasted wrong tokens meanwhile. Weak tokens keep the
// place in their limits that they have taken.
func (s *Server) enterAdmitted(ctx context.Context, resource oauth.Resource, a *attempt) (*fairqueue.Place, error) {
	place, err := s.enter(ctx, resource, a)
	if err != nil || !place.Waited || s.settings.Limits.WeakTokens {
		return place, err
	}
	if err := s.admitAttempt(ctx, a); err != nil {
		place.Leave()
		return nil, err
	}
	return place, nil
}

func outcomeOf(err error) oauth.Outcome {
	kind, _ := oauth.KindOf(err)
	switch {
	case err == nil:
		return oauth.Right
	case kind == oauth.WrongHostToken:
		return oauth.Wrong
	}
	return oauth.Undecided
}

// attemptOf reads what was pasted into the form of a ticket, "" for the connections page.
func (s *Server) attemptOf(pasted Pasted, ticket string) (*attempt, error) {
	a := &attempt{Guess: oauth.Guess{By: pasted.By, Ticket: ticket}}
	var err error
	if pasted.Proof == "" {
		a.host, err = oauth.ParseHostToken(pasted.Token)
	} else {
		err = s.readProof(a, pasted)
	}
	if err == nil {
		a.Token, err = s.settings.Keys.Fingerprint(a.host)
	}
	return a, err
}

// readProof takes the token from a proof. A proof that was used before proves nothing.
func (s *Server) readProof(a *attempt, pasted Pasted) error {
	now := s.now()
	proof, err := oauth.OpenProof(pasted.Proof, a.Ticket, s.settings, now)
	if err != nil {
		return err
	}
	a.host = proof.Host
	if !proof.Solved(pasted.Nonce) && !(proof.Waited(now) && s.ports.Guesses.Turn(a.By, proof.Digest(), now)) {
		a.failed = proof
		return nil
	}
	a.Proven = s.ports.Guesses.Spend(proof.Digest())
	return nil
}

// admitAttempt refuses with WrongHostToken a token that the site refused a moment ago, and with TooManyGuesses beyond the limits. A token with
// living grants has a limit of its own. It is looked up only when the limits of its network are reached, at a limited rate.
func (s *Server) admitAttempt(ctx context.Context, a *attempt) error {
	now := s.now()
	admission, err := s.ports.Guesses.Admit(ctx, a.Guess, now)
	if err == nil && admission.Proof && s.ports.Guesses.MayLookUp(a.By, now) {
		a.Holder, err = s.holdsGrants(ctx, a.host)
		if err == nil && a.Holder {
			admission, err = s.ports.Guesses.Admit(ctx, a.Guess, now)
		}
	}
	switch {
	case err != nil:
		return err
	case admission.Wrong:
		return oauth.Refuse(oauth.WrongHostToken, "B8", "the site did not know this token a moment ago")
	case admission.Proof:
		s.ports.Limited.Observe(oauth.LimitWrongTokens, oauth.LimitSlowed)
		return s.demandProof(a, now)
	case admission.Wait > 0:
		s.ports.Limited.Observe(oauth.LimitWrongTokens, oauth.LimitRefused)
		return oauth.RefuseFor(admission.Wait, oauth.TooManyGuesses, "B6", "too many wrong tokens")
	}
	return nil
}

// demandProof repeats a demand that is not met yet, so that the wait does not begin anew.
func (s *Server) demandProof(a *attempt, now time.Time) error {
	if a.failed != nil {
		return a.failed.Demand(now)
	}
	return oauth.NewProofDemand(a.host, a.Ticket, s.settings, now)
}

// holdsGrants reports whether the token has living grants.
func (s *Server) holdsGrants(ctx context.Context, host oauth.HostToken) (bool, error) {
	prints, err := s.settings.Keys.Fingerprints(host)
	if err != nil {
		return false, err
	}
	now := s.now()
	for _, print := range prints {
		found, err := s.ports.Store.AuthorizationsOf(ctx, print)
		if err != nil {
			return false, err
		}
		if len(found.Connections(now)) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// verify checks a pasted token with the verifier of the resource (U3).
func (s *Server) verify(ctx context.Context, resource oauth.Resource, host oauth.HostToken) (oauth.Principal, error) {
	principal, err := s.judgeOf(resource).askPasted(ctx, host)
	return s.withSubject(principal, err, host, "")
}

// verifyAgain checks the token of a grant (U3), whose subject was before.
func (s *Server) verifyAgain(ctx context.Context, resource oauth.Resource, host oauth.HostToken, before string) (oauth.Principal, error) {
	principal, err := s.judgeOf(resource).ask(ctx, host)
	return s.withSubject(principal, err, host, before)
}

// withSubject gives a principal without a subject the keyed fingerprint of the token, or the subject from before.
func (s *Server) withSubject(principal oauth.Principal, err error, host oauth.HostToken, before string) (oauth.Principal, error) {
	if err != nil || principal.Subject != "" {
		return principal, err
	}
	principal.Subject, err = oauth.KeyedSubject(host, before, s.settings.Keys)
	return principal, err
}
