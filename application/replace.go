package application

import (
	"context"
	"errors"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/quota"
)

// ReplaceHostToken moves the connections of a host token to another token of the same person, and
// returns their number. A site calls it with the values that identify the old one and all values of
// the new one. It refuses with WrongHostToken and OtherHostToken. If the verifier does not name a
// subject, the site must still accept the old token.
func (s Operator) ReplaceHostToken(ctx context.Context, values, replacement map[string]string) (int, error) {
	prints, old, err := s.printsOf(values)
	if err != nil {
		return 0, err
	}
	host, err := parseHost(s.Settings.HostFields, replacement)
	if err != nil {
		return 0, err
	}
	return s.replaceHost(ctx, prints, old, host)
}

// parseHost parses the values of the fields or, without fields, the value of credential.Token.
func parseHost(fields credential.Fields, values map[string]string) (oauth.HostToken, error) {
	if len(fields) == 0 {
		return oauth.ParseHostToken(values[credential.Token])
	}
	return oauth.ParseHostFields(fields, func(name string) string { return values[name] })
}

// Replace is Operator.ReplaceHostToken for sealed connections, with the limits on wrong tokens. It
// returns the connections of the new token.
func (s Connections) Replace(ctx context.Context, sealed string, pasted Pasted) (FoundConnections, error) {
	ctx, cancel := context.WithTimeout(ctx, approvalTimeout)
	defer cancel()
	prints, old, err := oauth.OpenConnections(sealed, s.Settings, s.now())
	if err != nil {
		return FoundConnections{}, err
	}
	found, err := s.activeConnections(ctx, prints, old)
	if err == nil && len(found.Active) == 0 {
		err = refuseStaleConnections()
	}
	if err != nil {
		return found, err
	}
	host, err := s.parsePasted(pasted, "", s.Settings.HostFields)
	if err != nil {
		return found, err
	}
	// The lanes count the new token once, at the resource of the connection that was used last.
	replaced, guess := 0, quota.Guess{By: pasted.By, Resource: found.Active[0].Resource.String()}
	err = s.enterLane(ctx, guess, host, func(ctx context.Context) error {
		replaced, err = s.replaceHost(ctx, prints, old, host)
		return err
	})
	if err == nil && replaced == 0 { // another form was faster
		err = refuseStaleConnections()
	}
	if err != nil {
		return found, err
	}
	return s.connectionsOf(ctx, host)
}

// replaceHost gives host to the connections of the old token, which has these fingerprints, unless
// one of them cannot go on with host. It verifies host again after the change, because an
// EndGrantsOf for host from before the change found nothing to end.
func (s *core) replaceHost(ctx context.Context, prints []oauth.Fingerprint, old, host oauth.HostToken) (int, error) {
	by := oauth.NewReplacement(host, s.now())
	found, err := s.authorizationsOf(ctx, prints)
	if err != nil {
		return 0, err
	}
	for _, connection := range found.Connections(s.Settings, s.now()) {
		if err := s.addAnswer(ctx, connection.Resource, by, old); err != nil {
			return 0, err
		}
	}
	if _, err := found.Replace(by, s.Settings, s.now()); err != nil { // a trial on copies, before anything is stored
		return 0, err
	}
	moved := 0
	for _, print := range prints {
		replaced := 0
		err := s.store.UpdateAuthorizationsOf(ctx, print, func(found oauth.Authorizations) (err error) {
			replaced, err = found.Replace(by, s.Settings, s.now())
			return err
		})
		if err != nil {
			return moved, err
		}
		moved += replaced
	}
	s.audit(ctx, "host_token_replaced", "connections", moved)
	s.enforceGrantLimit(ctx, "", host)
	s.store.awaitOthers(ctx, moved)
	for resource := range by.Verified {
		_, err := s.guardFor(resource).verifyPasted(ctx, host)
		if kind, _ := oauth.KindOf(err); kind != oauth.WrongHostToken {
			continue // an outage ends nothing
		}
		prints, printErr := s.Settings.Fingerprints(host)
		if printErr != nil {
			return moved, printErr
		}
		_, endErr := s.endConnections(ctx, prints, oauth.EndedByHostToken, func(string) bool { return true })
		return moved, errors.Join(err, endErr)
	}
	return moved, nil
}

// addAnswer adds the answer of the verifier of a resource about the new token, unless by has it. A
// verifier that names no subject has to accept the old token, too.
func (s *core) addAnswer(ctx context.Context, resource oauth.Resource, by oauth.Replacement,
	old oauth.HostToken) (err error) {
	if _, asked := by.Verified[resource]; asked || s.Settings.NameOf(resource) == "" {
		return nil
	}
	principal, err := s.guardFor(resource).verifyPasted(ctx, by.Host)
	if err == nil && principal.Subject == "" {
		_, err = s.guardFor(resource).verifyPasted(ctx, s.Settings.CompletedBy(old, by.Host))
		if kind, _ := oauth.KindOf(err); kind == oauth.WrongHostToken {
			err = oauth.RefuseOtherHostToken(err)
		}
	}
	if err == nil {
		by.Verified[resource] = principal
	}
	return err
}
