package application

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/quota"
)

// EndGrantsOf ends all grants of a host token, withdraws its codes that are not redeemed, and
// returns how many of both were active. A site calls it when it revokes one of its tokens. It
// returns an error if one of the required fields that the verifier verifies has no value.
func (s *Server) EndGrantsOf(ctx context.Context, values map[string]string, reason oauth.EndReason) (int, error) {
	prints, _, err := s.printsOf(values)
	if err != nil {
		return 0, err
	}
	ended, err := s.endConnections(ctx, prints, reason, func(string) bool { return true })
	if s.settings.AcceptHostTokens { // callers with the token itself have no connection
		s.ForgetDirectTokens(prints)
		for _, print := range prints {
			s.onGrantEnded(oauth.DirectID(print))
		}
	}
	s.store.awaitOthers(ctx, ended)
	return ended, err
}

// printsOf returns the host token that the values identify and its fingerprints.
func (s *Server) printsOf(values map[string]string) ([]oauth.Fingerprint, oauth.HostToken, error) {
	host, err := parseHost(s.settings.IdentityFields, values)
	if err != nil {
		return nil, host, err
	}
	prints, err := s.settings.Fingerprints(host)
	return prints, host, err
}

// EndLeaked ends all grants of a host token that its operator has. It returns a SeveralFieldsError
// if the service finds grants by several fields together.
func (s *Server) EndLeaked(ctx context.Context, hostToken string) (int, error) {
	values, err := s.onlyField(hostToken)
	if err != nil {
		return 0, err
	}
	return s.EndGrantsOf(ctx, values, oauth.EndedByOperator)
}

// GrantsOf returns the active grants of a host token that its operator has, and its codes that are
// not redeemed, oldest first. It fails as EndLeaked does.
func (s *Server) GrantsOf(ctx context.Context, hostToken string) ([]oauth.Connection, error) {
	values, err := s.onlyField(hostToken)
	if err != nil {
		return nil, err
	}
	prints, _, err := s.printsOf(values)
	if err != nil {
		return nil, err
	}
	all, err := s.authorizationsOf(ctx, prints)
	return all.Connections(s.settings, s.now()), err
}

// onlyField returns the value of the only field by which the service finds grants.
func (s *Server) onlyField(value string) (map[string]string, error) {
	fields := s.settings.IdentityFields.Names()
	if len(fields) > 1 {
		return nil, &SeveralFieldsError{fields}
	}
	return map[string]string{fields[0]: value}, nil
}

// SeveralFieldsError is the error of EndLeaked and GrantsOf when one token does not identify
// grants.
type SeveralFieldsError struct{ fields []string }

// Error implements error.
func (e *SeveralFieldsError) Error() string {
	return "the service finds grants by the fields " + strings.Join(e.fields, ", ") + " together"
}

// Connections are the active grants of one host token and its codes that are not redeemed, the last
// used first.
type Connections struct {
	Active []oauth.Connection
	At     time.Time // when they were found
	Sealed string    // for ShowConnections, EndConnection and ReplaceConnections
}

// FindConnections finds the connections of the pasted token. It does not check the token with the
// site, so that a person sees the connections of a token that the site has revoked. It refuses with
// MissingHostToken, TooManyGuesses and, for a text that cannot be a token, WrongHostToken, as
// Approve does. A wrong token and a token without connections both find nothing and count as a
// wrong guess, so that a guesser cannot distinguish them.
func (s *Server) FindConnections(ctx context.Context, pasted Pasted) (Connections, error) {
	host, err := s.parsePasted(pasted, "", s.settings.IdentityFields)
	if err != nil {
		return Connections{}, err
	}
	var found Connections
	err = s.enterLane(ctx, quota.Guess{By: pasted.By}, host, func(ctx context.Context) (err error) {
		if found, err = s.connectionsOf(ctx, host); err == nil && len(found.Active) == 0 {
			err = oauth.Refuse(oauth.WrongHostToken, "B6", "the token has no connections")
		}
		return err
	})
	if kind, _ := oauth.KindOf(err); kind == oauth.WrongHostToken { // it has none, now or a moment ago
		err = nil
	}
	return found, err
}

func (s *Server) connectionsOf(ctx context.Context, host oauth.HostToken) (Connections, error) {
	prints, err := s.settings.Fingerprints(host)
	if err != nil {
		return Connections{}, err
	}
	return s.activeConnections(ctx, prints, host)
}

// activeConnections finds the connections of one host token by its fingerprints. It seals only the
// newest fingerprint and those with connections, which bounds the size of the form.
func (s *Server) activeConnections(ctx context.Context, prints []oauth.Fingerprint, host oauth.HostToken) (
	Connections, error) {
	all, err := s.authorizationsOf(ctx, prints)
	if err != nil {
		return Connections{}, err
	}
	found := Connections{At: s.now()}
	found.Active = all.Connections(s.settings, found.At)
	slices.SortStableFunc(found.Active, func(a, b oauth.Connection) int { return b.LastSeen().Compare(a.LastSeen()) })
	used := map[oauth.Fingerprint]bool{prints[0]: true}
	for _, one := range all.All() {
		used[one.HostPrint()] = true
	}
	useful := slices.DeleteFunc(slices.Clone(prints), func(print oauth.Fingerprint) bool { return !used[print] })
	found.Sealed, err = oauth.SealConnections(useful, host, s.settings, found.At)
	return found, err
}

// ShowConnections returns the current state of sealed Connections. It refuses with InvalidTicket or
// ExpiredTicket.
func (s *Server) ShowConnections(ctx context.Context, sealed string) (Connections, error) {
	prints, host, err := oauth.OpenConnections(sealed, s.settings, s.now())
	if err != nil {
		return Connections{}, err
	}
	return s.activeConnections(ctx, prints, host)
}

// EndConnection ends one of the sealed connections, or all of them when id is empty, and returns
// their number and the remaining ones. It refuses with InvalidTicket and, also if there was nothing
// to end, with ExpiredTicket.
func (s *Server) EndConnection(ctx context.Context, sealed, id string) (ended int, left Connections, err error) {
	prints, host, err := oauth.OpenConnections(sealed, s.settings, s.now())
	if err != nil {
		return 0, Connections{}, err
	}
	ended, err = s.endConnections(ctx, prints, oauth.EndedByPerson,
		func(of string) bool { return id == "" || of == id })
	if err == nil && ended == 0 {
		err = refuseStaleConnections()
	}
	if err != nil {
		return ended, Connections{}, err
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
func (s *Server) endConnections(ctx context.Context, prints []oauth.Fingerprint, reason oauth.EndReason,
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
		for _, grant := range ended {
			s.announceEnd(ctx, grant, reason, "")
		}
		all += len(ended)
	}
	return all, nil
}

// endAuthorization withdraws the code or ends the grant with the id, and reports whether it was
// active. It begins with the code, because a code that is redeemed meanwhile has a grant.
func (s *Server) endAuthorization(ctx context.Context, id string, reason oauth.EndReason) (active bool, err error) {
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
