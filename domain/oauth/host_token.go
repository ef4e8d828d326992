package oauth

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/seal"
)

const maxHostTokenLength = 4096

// HostToken is a bearer token of the site that a person has pasted, or the text of several fields
// (credential.Values.Encode). It prints as "[redacted]".
type HostToken struct{ confidential }

// Values returns the values of its fields.
func (h HostToken) Values() credential.Values { return credential.Decode(h.Reveal()) }

// ParseHostToken unwraps the token in a pasted text (credential.UnwrapToken). It refuses
// an empty text with MissingHostToken, and one that cannot be a token with WrongHostToken and
// a *credential.ValueError.
func ParseHostToken(pasted string) (HostToken, error) {
	text, field := credential.UnwrapToken(pasted), credential.Single()[0]
	switch {
	case text == "":
		return HostToken{}, Refuse(MissingHostToken, "B7", "the token is missing")
	case len(text) > maxHostTokenLength:
		return HostToken{}, Refuse(WrongHostToken, "B7", "the token is longer than 4096 bytes",
			&credential.ValueError{Field: field, Reason: credential.TooLong})
	case credential.HasControl(text):
		return HostToken{}, Refuse(WrongHostToken, "B7", "the token has control characters",
			&credential.ValueError{Field: field, Reason: credential.Control})
	case IsOwnToken(text):
		issued := &credential.ValueError{Field: field, Reason: credential.Issued}
		return HostToken{}, Refuse(WrongHostToken, "B7", issued.Error(), issued)
	}
	return HostToken{conceal(text)}, nil
}

// ParseHostFields is ParseHostToken for several fields. The error of a refused value contains a
// *credential.ValueError.
func ParseHostFields(fields credential.Fields, entered func(name string) string) (HostToken, error) {
	values, err := fields.Parse(func(name string) string {
		if name == credential.Token {
			return credential.UnwrapToken(entered(name))
		}
		return entered(name)
	})
	for _, field := range fields {
		if err == nil && IsOwnToken(values[field.Name]) {
			err = &credential.ValueError{Field: field, Reason: credential.Issued}
		}
	}
	if wrong := new(credential.ValueError); errors.As(err, &wrong) {
		kind := WrongHostToken
		if wrong.Reason == credential.Missing {
			kind = MissingHostToken
		}
		return HostToken{}, Refuse(kind, "B23", wrong.Error(), wrong)
	}
	return HostToken{conceal(values.Encode())}, err
}

// UnsealedHostToken is a host token with the data key of its box, so that Refresh can wrap the key
// for the next holder without unwrapping it again.
type UnsealedHostToken struct {
	HostToken
	wrap, dataKey []byte // the key as sealedHostToken has it, and unwrapped
}

// Forget overwrites the data key. Call it after the refresh of the grant.
func (u *UnsealedHostToken) Forget() {
	if u == nil {
		return
	}
	clear(u.dataKey)
	u.wrap = nil
}

// sealedHostToken is a host token under envelope encryption. The zero value has none.
type sealedHostToken struct {
	box    []byte // the token, encrypted with a data key; nil if there is a replacement
	wrap   []byte // the data key, encrypted for the holder of the grant's current secret
	public []byte // public half of the key pair of the data key
	// replacement is the token after a Replacement, encrypted to the public half. The next
	// rewrapDataKey turns it into a box.
	replacement []byte
}

func (h sealedHostToken) isEmpty() bool { return h.public == nil }

const hostBox = "host"

func replacementOf(grant string) seal.Binding {
	return seal.Binding{Kind: "host-replacement", Owner: grant}
}

// wrapSealers returns the sealers for the data key. Only the holder of the secret can derive them.
func wrapSealers(holder Secret, grant string, keys seal.KeyRing) (seal.Sealers, error) {
	return keys.HolderSealers(holder, seal.Binding{Kind: "wrap/" + string(holder.kind()), Owner: grant})
}

func sealHostToken(host HostToken, holder Secret, grant string, random io.Reader,
	keys seal.KeyRing) (sealedHostToken, error) {
	dataKey := make([]byte, seal.KeySize)
	if _, err := io.ReadFull(random, dataKey); err != nil {
		return sealedHostToken{}, fmt.Errorf("generating a data key: %w", err)
	}
	defer clear(dataKey)
	inner, err := seal.NewSealer(dataKey, seal.Binding{Kind: hostBox, Owner: grant})
	if err != nil {
		return sealedHostToken{}, err
	}
	outer, err := wrapSealers(holder, grant, keys)
	if err != nil {
		return sealedHostToken{}, err
	}
	public, err := seal.PublicKey(dataKey, replacementOf(grant))
	if err != nil {
		return sealedHostToken{}, err
	}
	return sealedHostToken{box: inner.Seal([]byte(host.Reveal())), wrap: outer.Seal(dataKey), public: public}, nil
}

// replace seals another host token in place of this one. It needs no data key, but opening does.
func (h sealedHostToken) replace(by Replacement, grant string, keys seal.KeyRing) (sealedHostToken, error) {
	if h.isEmpty() {
		return h, nil
	}
	h.box = nil
	if box, sealed := by.boxes[string(h.public)]; sealed {
		h.replacement = box
		return h, nil
	}
	sealers, err := keys.PairSealers(replacementOf(grant))
	if err != nil {
		return h, err
	}
	if h.replacement, err = sealers.Seal(h.public, []byte(by.Host.Reveal())); err != nil {
		return h, err
	}
	by.boxes[string(h.public)] = h.replacement
	return h, nil
}

// unwrap returns the data key, or ErrHostTokenLost when no key fits.
func (h sealedHostToken) unwrap(holder Secret, grant string, keys seal.KeyRing) ([]byte, error) {
	outer, err := wrapSealers(holder, grant, keys)
	if err != nil {
		return nil, err
	}
	dataKey, err := outer.Open(h.wrap)
	return dataKey, lostKey(err)
}

func (h sealedHostToken) open(holder Secret, grant string, keys seal.KeyRing) (*UnsealedHostToken, error) {
	dataKey, err := h.unwrap(holder, grant, keys)
	if err != nil {
		return nil, err
	}
	opened := &UnsealedHostToken{wrap: h.wrap, dataKey: dataKey}
	text, err := h.openBox(dataKey, grant, keys)
	if err != nil {
		opened.Forget()
		return nil, err
	}
	opened.HostToken = HostToken{conceal(string(text))}
	return opened, nil
}

// openBox returns the text of the token, or ErrHostTokenLost when the data key does not fit.
func (h sealedHostToken) openBox(dataKey []byte, grant string, keys seal.KeyRing) (text []byte, err error) {
	if h.replacement != nil {
		sealers, err := keys.PairSealers(replacementOf(grant))
		if err != nil {
			return nil, err
		}
		text, err = sealers.Open(dataKey, h.replacement)
		return text, lostKey(err)
	}
	inner, err := seal.NewSealer(dataKey, seal.Binding{Kind: hostBox, Owner: grant})
	if err != nil {
		return nil, err
	}
	text, err = inner.Open(h.box)
	return text, lostKey(err)
}

func lostKey(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrHostTokenLost, err)
}

// rewrapFor unwraps the data key for the holder of from, and wraps it for the holder of to.
func (h sealedHostToken) rewrapFor(from, to Secret, grant string, keys seal.KeyRing) (sealedHostToken, error) {
	keys, err := keys.Snapshot()
	if err != nil {
		return sealedHostToken{}, err
	}
	dataKey, err := h.unwrap(from, grant, keys)
	if err != nil {
		return sealedHostToken{}, err
	}
	defer clear(dataKey)
	return h.rewrapDataKey(dataKey, to, grant, keys)
}

// rewrapDataKey is rewrapFor with an unwrapped data key. It also turns a replacement into a box,
// which costs less to open.
func (h sealedHostToken) rewrapDataKey(dataKey []byte, to Secret, grant string,
	keys seal.KeyRing) (sealedHostToken, error) {
	outer, err := wrapSealers(to, grant, keys)
	if err != nil {
		return sealedHostToken{}, err
	}
	h.wrap = outer.Seal(dataKey)
	if h.replacement == nil {
		return h, nil
	}
	text, err := h.openBox(dataKey, grant, keys)
	if err != nil {
		return sealedHostToken{}, err
	}
	inner, err := seal.NewSealer(dataKey, seal.Binding{Kind: hostBox, Owner: grant})
	if err != nil {
		return sealedHostToken{}, err
	}
	h.box, h.replacement = inner.Seal(text), nil
	return h, nil
}

// Replacement is a host token that takes over the connections of another one of the same person.
type Replacement struct {
	Host     HostToken
	Verified map[Resource]Principal // the answers of the verifiers about Host
	Began    time.Time              // when the verifications began
	boxes    map[string][]byte      // Host, sealed to each public half; kept for a change that runs again
}

// NewReplacement returns a replacement that no verifier has answered.
func NewReplacement(host HostToken, now time.Time) Replacement {
	return Replacement{host, map[Resource]Principal{}, now, map[string][]byte{}}
}

// Replace gives the active authorizations another host token, and returns how many it has changed.
// It leaves out those whose resource is not in by.Verified. It refuses with OtherHostToken if a
// verifier names another person for one of the others, or permits none of its scopes.
func (a Authorizations) Replace(by Replacement, settings *Settings, now time.Time) (replaced int, err error) {
	keys, err := settings.Keys.Snapshot()
	if err != nil {
		return 0, err
	}
	settings = settings.withKeys(keys)
	for _, code := range a.Codes {
		if _, answered := by.Verified[code.resource]; !answered || !code.active(now) {
			continue
		}
		if err := by.applyTo(&code.consent, settings); err != nil {
			return 0, err
		}
		replaced++
	}
	for _, grant := range a.Grants {
		if _, answered := by.Verified[grant.resource]; !answered || !grant.active(now) {
			continue
		}
		if err := by.applyTo(&grant.consent, settings); err != nil {
			return 0, err
		}
		grant.verifiedAt = by.Began
		replaced++
	}
	return replaced, nil
}

func (r Replacement) applyTo(of *consent, settings *Settings) (err error) {
	principal := r.Verified[of.resource]
	if principal.Subject == "" { // the verifier names no subject, so the grant keeps its own
		principal.Subject = of.subject
	}
	if principal.Subject != of.subject || of.ReasonToEnd(principal, settings) != "" {
		return RefuseOtherHostToken()
	}
	of.scopes, of.roles, of.tokenID = of.scopesFor(principal, settings), principal.Roles, principal.TokenID
	if of.hostPrint, err = settings.Keys.Fingerprint(settings.Identity(r.Host)); err != nil {
		return err
	}
	of.host, err = of.host.replace(r, of.id, settings.Keys)
	return err
}

// RefuseOtherHostToken refuses a host token that may not replace another one.
func RefuseOtherHostToken(causes ...error) error {
	return Refuse(OtherHostToken, "J19", "the new token belongs to another person, or permits less", causes...)
}
