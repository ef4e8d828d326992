package oauth

import (
	"crypto/hmac"
	"encoding/base64"
	"fmt"
	"strings"
)

const sessionTagBytes = 16

// BindSession ties the name of a session to its owner (Caller.SessionOwner), so that other owners cannot use the name
// (U12). It stores nothing, so the name stays valid over a restart and at other replicas.
func (k Keys) BindSession(session, owner string) (string, error) {
	tags, err := k.sessionTags(session, owner)
	if err != nil {
		return "", err
	}
	return session + "." + written(tags[0]), nil
}

// OpenSession gives back what BindSession was given; ok is false for a name that was not bound to this owner.
func (k Keys) OpenSession(bound, owner string) (session string, ok bool, err error) {
	at := strings.LastIndexByte(bound, '.')
	if at < 0 {
		return "", false, nil
	}
	tags, err := k.sessionTags(bound[:at], owner)
	for _, tag := range tags {
		ok = ok || hmac.Equal([]byte(written(tag)), []byte(bound[at+1:]))
	}
	if err != nil || !ok {
		return "", false, err
	}
	return bound[:at], true, nil
}

func (k Keys) sessionTags(session, owner string) ([]tag, error) {
	tags, err := k.tags("pasteport/v1/session", owner, "\x00", session) // no owner has a zero byte
	if err != nil {
		return nil, fmt.Errorf("deriving a session key: %w", err)
	}
	return tags, nil
}

// written is a tag as it stands in a session's name.
func written(t tag) string { return base64.RawURLEncoding.EncodeToString(t[:sessionTagBytes]) }
