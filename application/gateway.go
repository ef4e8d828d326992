package application

import (
	"cmp"
	"context"
	"errors"

	"github.com/pasteport/pasteport/domain/oauth"
)

// AuthenticateWithHostToken also returns the host token that was pasted for the resource, for the one upstream that gave it out
// (J13, U6). A token that cannot open it is refused without harm to its grant: the next refresh brings one that can.
func (s *Server) AuthenticateWithHostToken(ctx context.Context, bearer string, resource oauth.Resource) (oauth.Caller, oauth.HostToken, error) {
	token, err := accessToken(bearer)
	if err != nil {
		return oauth.Caller{}, oauth.HostToken{}, err
	}
	grant, caller, err := s.authenticate(ctx, token, resource)
	if err != nil {
		return oauth.Caller{}, oauth.HostToken{}, err
	}
	host, err := grant.HostTokenInUse(token, s.settings)
	if errors.Is(err, oauth.ErrHostTokenLost) {
		err = cmp.Or(s.openedElsewhere(ctx), oauth.UnopeningToken())
	}
	if err != nil {
		return oauth.Caller{}, oauth.HostToken{}, err
	}
	return caller, host, nil
}

// EndByUpstream ends the grant of an access token whose host token the upstream has just refused (U8).
func (s *Server) EndByUpstream(ctx context.Context, bearer string) error {
	token, err := accessToken(bearer)
	if err != nil {
		return err
	}
	return forgiveUnknown(s.end(ctx, token.Digest(), oauth.EndedByHostToken))
}
