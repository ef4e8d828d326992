package application

import (
	"context"

	"github.com/pasteport/pasteport/domain/oauth"
)

// EndGrantsOf ends every grant that was made with the host token, at once; a site calls it when it revokes one of its tokens
// (J10). It returns how many were alive.
func (s *Server) EndGrantsOf(ctx context.Context, hostToken string) (int, error) {
	host, err := oauth.ParseHostToken(hostToken)
	if err != nil {
		return 0, err
	}
	print, err := s.settings.Keys.Fingerprint(host)
	if err != nil {
		return 0, err
	}
	return s.endConnections(ctx, print, oauth.EndedByHost, func(*oauth.AccessGrant) bool { return true })
}

// Connections is what a person sees of the living grants that were made with one host token, with what lets them end some.
type Connections struct {
	Living []oauth.Connection
	Sealed string
}

// FindConnections finds what was connected with the token that was pasted from address. The site is not asked: whoever holds the
// token may see them, also when the site has revoked it. It refuses with MissingHostToken and TooManyGuesses; a wrong token finds
// nothing, as one without connections does, and both count as a guess (B6).
func (s *Server) FindConnections(ctx context.Context, pasted, address string) (Connections, error) {
	settle, wait := s.ports.Guesses.Attempt(address, "connections "+address, s.now())
	if wait > 0 {
		return Connections{}, oauth.RefuseFor(wait, oauth.TooManyGuesses, "too many wrong tokens")
	}
	found, err := s.connectionsOf(ctx, pasted)
	settle(err == nil && len(found.Living) == 0)
	return found, err
}

func (s *Server) connectionsOf(ctx context.Context, pasted string) (Connections, error) {
	host, err := oauth.ParseHostToken(pasted)
	if kind, _ := oauth.KindOf(err); kind == oauth.WrongHostToken {
		return Connections{}, nil
	}
	if err != nil {
		return Connections{}, err
	}
	print, err := s.settings.Keys.Fingerprint(host)
	if err != nil {
		return Connections{}, err
	}
	return s.living(ctx, print)
}

func (s *Server) living(ctx context.Context, print oauth.Fingerprint) (found Connections, err error) {
	grants, err := s.ports.Store.GrantsOf(ctx, print)
	if err != nil {
		return found, err
	}
	now := s.now()
	for _, grant := range grants {
		if shown, alive := grant.Connection(now); alive {
			found.Living = append(found.Living, shown)
		}
	}
	found.Sealed, err = oauth.SealConnections(print, s.settings, now)
	return found, err
}

// EndConnection ends one of the connections that Connections has sealed, or all of them when id is empty, and returns what is
// left. It refuses with InvalidTicket or ExpiredTicket.
func (s *Server) EndConnection(ctx context.Context, sealed, id string) (Connections, error) {
	print, err := oauth.OpenConnections(sealed, s.settings, s.now())
	if err != nil {
		return Connections{}, err
	}
	_, err = s.endConnections(ctx, print, oauth.EndedByPerson, func(g *oauth.AccessGrant) bool { return id == "" || g.ID() == id })
	if err != nil {
		return Connections{}, err
	}
	return s.living(ctx, print)
}

// endConnections ends the chosen grants of one host token in one step and returns how many of them were alive.
func (s *Server) endConnections(ctx context.Context, print oauth.Fingerprint, reason oauth.EndReason, chosen func(*oauth.AccessGrant) bool) (int, error) {
	ended := map[string]bool{}
	now := s.now()
	err := s.ports.Store.UpdateGrantsOf(ctx, print, func(g *oauth.AccessGrant) error {
		if chosen(g) && g.End(reason, now) {
			ended[g.ID()] = true
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for grant := range ended {
		s.announceEnd(ctx, grant, reason)
	}
	return len(ended), nil
}
