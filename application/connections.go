package application

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/quota"
)

// EndGrantsOf ends all grants of the host token that the values identify, withdraws its codes, and
// returns how many of both were active. It fails if an identifying field has no value.
func (s Operator) EndGrantsOf(ctx context.Context, values map[string]string, reason oauth.EndReason) (int, error) {
	prints, _, err := s.printsOf(values)
	if err != nil {
		return 0, err
	}
	ended, err := s.endConnections(ctx, prints, reason, func(string) bool { return true })
	if s.Settings.AcceptHostTokens { // callers with the token itself have no connection
		s.ForgetDirectTokens(prints)
		for _, print := range prints {
			s.onGrantEnded(oauth.DirectID(print))
		}
	}
	s.store.awaitOthers(ctx, ended)
	return ended, err
}

// printsOf returns the host token that the values identify and its fingerprints.
func (s *core) printsOf(values map[string]string) ([]oauth.Fingerprint, oauth.HostToken, error) {
	host, err := parseHost(s.Settings.IdentityFields, values)
	if err != nil {
		return nil, host, err
	}
	prints, err := s.Settings.Fingerprints(host)
	return prints, host, err
}

// EndLeaked is EndGrantsOf for an operator who has the host token. It returns a SeveralFieldsError
// if the service finds grants by several fields together.
func (s Operator) EndLeaked(ctx context.Context, hostToken string) (int, error) {
	values, err := s.onlyField(hostToken)
	if err != nil {
		return 0, err
	}
	return s.EndGrantsOf(ctx, values, oauth.EndedByOperator)
}

// GrantsOf returns the active grants and the unredeemed codes of a host token, oldest first. It
// fails as EndLeaked does.
func (s Operator) GrantsOf(ctx context.Context, hostToken string) ([]oauth.Connection, error) {
	values, err := s.onlyField(hostToken)
	if err != nil {
		return nil, err
	}
	prints, _, err := s.printsOf(values)
	if err != nil {
		return nil, err
	}
	all, err := s.authorizationsOf(ctx, prints)
	return all.Connections(s.Settings, s.now()), err
}

// onlyField returns the value of the only field by which the service finds grants.
func (s *core) onlyField(value string) (map[string]string, error) {
	fields := s.Settings.IdentityFields.Names()
	if len(fields) > 1 {
		return nil, &SeveralFieldsError{fields}
	}
	return map[string]string{fields[0]: value}, nil
}

// SeveralFieldsError is the error of EndLeaked and GrantsOf if one token identifies no grants.
type SeveralFieldsError struct{ fields []string }

func (e *SeveralFieldsError) Error() string {
	return "the service finds grants by the fields " + strings.Join(e.fields, ", ") + " together"
}

// FoundConnections are the active grants and codes of one host token, the last used first.
type FoundConnections struct {
	Active []oauth.Connection
	At     time.Time // when they were found
	Sealed string    // the token with its fingerprints, for Show, End and Replace
}

// Find finds the connections of the pasted token without asking the site, so that a person sees
// those of a token that the site has revoked. It refuses as Approve does. A wrong token and one
// without connections both find nothing and count as a wrong guess, so that a guesser cannot
// distinguish them.
func (s Connections) Find(ctx context.Context, pasted Pasted) (FoundConnections, error) {
	host, err := s.parsePasted(pasted, "", s.Settings.IdentityFields)
	if err != nil {
		return FoundConnections{}, err
	}
	var found FoundConnections
	err = s.enterLane(ctx, quota.Guess{By: pasted.By}, host, func(ctx context.Context) (err error) {
		if found, err = s.connectionsOf(ctx, host); err == nil && len(found.Active) == 0 {
			err = oauth.Refuse(oauth.WrongHostToken, "B6", "the token has no connections")
		}
		return err
	})
	if kind, _ := oauth.KindOf(err); kind == oauth.WrongHostToken { // it has none, or had none a moment ago
		err = nil
	}
	return found, err
}

func (s *core) connectionsOf(ctx context.Context, host oauth.HostToken) (FoundConnections, error) {
	prints, err := s.Settings.Fingerprints(host)
	if err != nil {
		return FoundConnections{}, err
	}
	return s.activeConnections(ctx, prints, host)
}

// activeConnections finds the connections of one host token by its fingerprints. It seals only the
// newest fingerprint and those with connections, which bounds the size of the form.
func (s *core) activeConnections(ctx context.Context, prints []oauth.Fingerprint, host oauth.HostToken) (
	FoundConnections, error) {
	all, err := s.authorizationsOf(ctx, prints)
	if err != nil {
		return FoundConnections{}, err
	}
	found := FoundConnections{At: s.now()}
	found.Active = all.Connections(s.Settings, found.At)
	slices.SortStableFunc(found.Active, func(a, b oauth.Connection) int { return b.LastSeen().Compare(a.LastSeen()) })
	used := map[oauth.Fingerprint]bool{prints[0]: true}
	for _, one := range all.All() {
		used[one.HostPrint()] = true
	}
	useful := slices.DeleteFunc(slices.Clone(prints), func(print oauth.Fingerprint) bool { return !used[print] })
	found.Sealed, err = oauth.SealConnections(useful, host, s.Settings, found.At)
	return found, err
}

// Show finds sealed connections again. It refuses with InvalidTicket or ExpiredTicket.
func (s Connections) Show(ctx context.Context, sealed string) (FoundConnections, error) {
	prints, host, err := oauth.OpenConnections(sealed, s.Settings, s.now())
	if err != nil {
		return FoundConnections{}, err
	}
	return s.activeConnections(ctx, prints, host)
}

// End ends one of the sealed connections, or all of them when id is empty, and returns their number
// and the remaining ones. It refuses with InvalidTicket, and with ExpiredTicket also when it has
// ended none.
func (s Connections) End(ctx context.Context, sealed, id string) (ended int, left FoundConnections, err error) {
	prints, host, err := oauth.OpenConnections(sealed, s.Settings, s.now())
	if err != nil {
		return 0, FoundConnections{}, err
	}
	ended, err = s.endConnections(ctx, prints, oauth.EndedByPerson,
		func(one string) bool { return id == "" || one == id })
	if err == nil && ended == 0 {
		err = refuseStaleConnections()
	}
	if err != nil {
		return ended, FoundConnections{}, err
	}
	s.store.awaitOthers(ctx, ended)
	left, err = s.activeConnections(ctx, prints, host)
	return ended, left, err
}

func refuseStaleConnections() error {
	return oauth.Refuse(oauth.ExpiredTicket, "J21", "the connections have ended, or use another token now")
}

// endConnections ends the chosen grants and withdraws the chosen codes of the fingerprints. It
// returns how many of them were active.
func (s *core) endConnections(ctx context.Context, prints []oauth.Fingerprint, reason oauth.EndReason,
	chosen func(id string) bool) (all int, err error) {
	now := s.now()
	for _, print := range prints {
		var ended []string
		err := s.store.UpdateAuthorizationsOf(ctx, print, func(found oauth.Authorizations) error {
			ended = found.End(chosen, reason, now)
			return nil
		})
		if err != nil {
			return all, err
		}
		for _, id := range ended {
			s.announceEnd(ctx, id, reason, "")
		}
		all += len(ended)
	}
	return all, nil
}

// endAuthorization withdraws the code or ends the grant with the id, and reports whether it was
// active. It begins with the code, because a code that is redeemed meanwhile has a grant.
func (s *core) endAuthorization(ctx context.Context, id string, reason oauth.EndReason) (active bool, err error) {
	now := s.now()
	for _, of := range []oauth.Selection{{Code: id}, {Grant: id}} {
		err := s.store.Change(ctx, of, func(found *oauth.Authorizations) error {
			active = len(found.End(func(string) bool { return true }, reason, now)) > 0
			return nil
		})
		s.store.forget(id)
		switch {
		case err != nil:
			return false, err
		case active:
			s.announceEnd(ctx, id, reason, "")
			return true, nil
		}
	}
	return false, nil
}
