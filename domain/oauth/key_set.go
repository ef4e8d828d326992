package oauth

import "slices"

// Key is a client's public key: a decoded JSON Web Key (RFC 7517).
type Key map[string]any

// KeySet holds the keys that a client publishes.
type KeySet struct{ keys []Key }

var privateKeyMembers = []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"}

// NewKeySet reads a decoded JWK set; it refuses with InvalidClientDocument one that holds anything but public keys (C31).
func NewKeySet(members map[string]any) (KeySet, error) {
	entries, ok := members["keys"].([]any)
	if !ok {
		return KeySet{}, invalidDocument("C31", "the client's jwks is no key set")
	}
	var set KeySet
	for _, entry := range entries {
		key, ok := entry.(map[string]any)
		private := slices.ContainsFunc(privateKeyMembers, func(member string) bool { _, has := key[member]; return has })
		if !ok || private || key["kty"] == any("oct") {
			return KeySet{}, invalidDocument("C31", "the client's jwks holds a key that is no public key")
		}
		set.keys = append(set.keys, key)
	}
	return set, nil
}

// Key returns the one key of that id. An assertion that names none means the only key that there is.
func (s KeySet) Key(id string) (Key, bool) {
	var found []Key
	for _, key := range s.keys {
		if id == "" || key["kid"] == any(id) {
			found = append(found, key)
		}
	}
	if len(found) != 1 {
		return nil, false
	}
	return found[0], true
}
