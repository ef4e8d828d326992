package application

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

// EndGrantsOf ends all grants of the host token, withdraws its codes that are not redeemed, and
// returns how many of both were active. A site calls it when it revokes one of its tokens.
func (s *Server) EndGrantsOf(ctx context.Context, hostToken string) (int, error) {
	return s.EndGrantsOfFields(ctx, map[string]string{credential.Token: hostToken}, oauth.EndedByHost)
}

// EndGrantsOfFields is EndGrantsOf for a site whose verifier verifies several fields. It returns an
// error if a required field has no value.
func (s *Server) EndGrantsOfFields(ctx context.Context, values map[string]string, reason oauth.EndReason) (int, error) {
	host, err := parseHost(s.settings.IdentityFields, values)
	if err != nil {
		return 0, err
	}
	prints, err := s.settings.Fingerprints(host)
	if err != nil {
		return 0, err
	}
	ended, err := s.endConnections(ctx, prints, reason, func(string) bool { return true })
	s.endDirect(prints)
	s.store.awaitOthers(ctx, ended)
	return ended, err
}

// EndLeaked ends all grants of a host token that its operator has. It returns a SeveralFieldsError
// if the service finds grants by several fields together.
func (s *Server) EndLeaked(ctx context.Context, hostToken string) (int, error) {
	values, err := s.onlyField(hostToken)
	if err != nil {
		return 0, err
	}
	return s.EndGrantsOfFields(ctx, values, oauth.EndedByOperator)
}

// GrantsOf returns the active grants of a host token that its operator has, and its codes that are
// not redeemed, oldest first. It fails as EndLeaked does.
func (s *Server) GrantsOf(ctx context.Context, hostToken string) ([]oauth.Connection, error) {
	values, err := s.onlyField(hostToken)
	if err != nil {
		return nil, err
	}
	host, err := parseHost(s.settings.IdentityFields, values)
	if err != nil {
		return nil, err
	}
	found, err := s.connectionsOf(ctx, host)
	slices.SortFunc(found.Active, func(a, b oauth.Connection) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return found.Active, err
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
	err = s.enterLane(ctx, oauth.Guess{By: pasted.By}, host, func(ctx context.Context) (err error) {
		if found, err = s.connectionsOf(ctx, host); err == nil && len(found.Active) == 0 {
			err = errNoConnections
		}
		return err
	})
	if kind, _ := oauth.KindOf(err); kind == oauth.WrongHostToken { // it has none, now or a moment ago
		err = nil
	}
	return found, err
}

// errNoConnections counts as a wrong token.
var errNoConnections = oauth.Refuse(oauth.WrongHostToken, "B6", "the token has no connections")

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
	found Connections, err error) {
	now, useful := s.now(), slices.Clone(prints[:1])
	found.At = now
	for i, print := range slices.Backward(prints) {
		authorizations, err := s.authorizationsOf(ctx, print)
		if err != nil {
			return found, err
		}
		active := authorizations.Connections(s.settings, now)
		found.Active = append(found.Active, active...)
		if i > 0 && len(active) > 0 {
			useful = slices.Insert(useful, 1, print)
		}
	}
	slices.SortStableFunc(found.Active, func(a, b oauth.Connection) int { return b.LastSeen().Compare(a.LastSeen()) })
	found.Sealed, err = oauth.SealConnections(useful, host, s.settings, now)
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
	for _, print := range prints {
		ended, err := s.endAuthorizations(ctx, print, reason, chosen)
		if err != nil {
			return all, err
		}
		all += ended
	}
	return all, nil
}

// endAuthorizations ends the chosen codes and grants of one fingerprint in one transaction.
func (s *Server) endAuthorizations(ctx context.Context, print oauth.Fingerprint, reason oauth.EndReason,
	chosen func(id string) bool) (int, error) {
	var ended []string
	now := s.now()
	err := s.store.UpdateAuthorizationsOf(ctx, print, func(found oauth.Authorizations) error {
		ended = found.End(chosen, reason, now)
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, grant := range ended {
		s.announceEnd(ctx, grant, reason, "")
	}
	return len(ended), nil
}

// endAuthorization withdraws a code or ends a grant, also if its host token was replaced meanwhile,
// and reports whether it was active.
func (s *Server) endAuthorization(ctx context.Context, of oauth.Authorization, reason oauth.EndReason) (bool, error) {
	ended, err := s.endAuthorizations(ctx, of.HostPrint(), reason, func(id string) bool { return id == of.ID() })
	if err != nil || ended > 0 {
		return ended > 0, err
	}
	grant, err := s.store.Grant(ctx, of.ID())
	if err != nil {
		return false, ignoreNotFound(err)
	}
	active, err := s.end(ctx, grant, reason)
	return active, ignoreNotFound(err)
}
