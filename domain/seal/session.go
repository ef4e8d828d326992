package seal

import (
	"crypto/hmac"
	"encoding/base64"
	"strings"
)

const sessionTagBytes = 16

// BindSession appends a tag to a session ID that binds it to its owner, so that no other owner can
// use it. The bound ID is also valid after a restart and at other replicas, because verifying the
// tag needs only the server secret.
func (k KeyRing) BindSession(session, owner string) (string, error) {
	tags, err := k.sessionTags(session, owner)
	if err != nil {
		return "", err
	}
	return session + "." + encodeTag(tags[0]), nil
}

// OpenSession returns the session ID without its tag; ok is false if the tag does not bind it to
// this owner.
func (k KeyRing) OpenSession(bound, owner string) (session string, ok bool, err error) {
	at := strings.LastIndexByte(bound, '.')
	if at < 0 {
		return "", false, nil
	}
	tags, err := k.sessionTags(bound[:at], owner)
	for _, tag := range tags {
		ok = ok || hmac.Equal([]byte(encodeTag(tag)), []byte(bound[at+1:]))
	}
	if err != nil || !ok {
		return "", false, err
	}
	return bound[:at], true, nil
}

func (k KeyRing) sessionTags(session, owner string) ([]Tag, error) {
	return k.Tags("session", owner, "\x00", session) // no owner has a zero byte
}

func encodeTag(t Tag) string { return base64.RawURLEncoding.EncodeToString(t[:sessionTagBytes]) }
