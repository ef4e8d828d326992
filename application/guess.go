package application

import (
	"context"
	"time"

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

// checkPasted checks the token with the verifier, within the limits on wrong tokens (B6, B18).
func (s *Server) checkPasted(ctx context.Context, ticket *oauth.Ticket, pasted Pasted) (oauth.HostToken, oauth.Principal, error) {
	resource := ticket.Request().Resource()
	a, err := s.attemptOf(pasted, ticket.ID())
	if err != nil {
		return a.host, oauth.Principal{}, err
	}
	a.Resource = resource.String()
	if err := s.admitAttempt(ctx, a); err != nil {
		return a.host, oauth.Principal{}, err
	}
	principal, err := s.verifyInTurn(ctx, resource, a)
	s.ports.Guesses.Settle(ctx, a.Guess, outcomeOf(ctx, err), s.now())
	return a.host, principal, err
}

func (s *Server) verifyInTurn(ctx context.Context, resource oauth.Resource, a *attempt) (oauth.Principal, error) {
	place, err := s.enter(ctx, resource, a.By)
	if err != nil {
		return oauth.Principal{}, err
	}
	defer place.Leave()
	return s.verify(ctx, resource, a.host, "")
}

// outcomeOf returns Abandoned for a client that hangs up early, because it could otherwise have tokens checked without limit.
func outcomeOf(ctx context.Context, err error) oauth.Outcome {
	kind, _ := oauth.KindOf(err)
	switch {
	case err == nil:
		return oauth.Right
	case kind == oauth.WrongHostToken:
		return oauth.Wrong
	case kind == oauth.TooManyGuesses: // the check has not begun
		return oauth.Undecided
	case ctx.Err() != nil:
		return oauth.Abandoned
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
	if !proof.Solved(pasted.Nonce) && !(proof.Waited(now) && s.ports.Guesses.Turn(a.By, now)) {
		a.failed = proof
		return nil
	}
	a.Proven = s.ports.Guesses.Spend(proof.Digest(), now)
	return nil
}

// admitAttempt refuses with WrongHostToken a token that the site refused a moment ago, and with TooManyGuesses beyond the limits. A token with
// living grants has a limit of its own. It is looked up only when the limits of its network are reached, so that other attempts read no grants.
func (s *Server) admitAttempt(ctx context.Context, a *attempt) error {
	now := s.now()
	admission, err := s.ports.Guesses.Admit(ctx, a.Guess, now)
	if err == nil && admission.Proof {
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
		grants, err := s.ports.Store.GrantsOf(ctx, print)
		if err != nil {
			return false, err
		}
		for _, grant := range grants {
			if _, alive := grant.Connection(now); alive {
				return true, nil
			}
		}
	}
	return false, nil
}

// verify checks the token with the verifier of the resource (U3). The subject of a principal without one is the keyed fingerprint of the
// token, or the subject from before.
func (s *Server) verify(ctx context.Context, resource oauth.Resource, host oauth.HostToken, before string) (oauth.Principal, error) {
	principal, err := s.judgeOf(resource).ask(ctx, host)
	if err != nil || principal.Subject != "" {
		return principal, err
	}
	principal.Subject, err = s.settings.Keys.Subject(host, before)
	return principal, err
}
