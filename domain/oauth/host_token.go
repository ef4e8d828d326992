package oauth

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/pasteport/pasteport/domain/seal"
)

const maxHostTokenLength = 4096

// HostToken is a bearer token of the site that a person has pasted. It prints as "[redacted]".
type HostToken struct{ confidential }

// ParseHostToken trims white space and a "Bearer" prefix (B7). It refuses an empty text with MissingHostToken, and one that cannot be a token with
// WrongHostToken.
func ParseHostToken(pasted string) (HostToken, error) {
	text := strings.Trim(pasted, " \t\r\n\f\v")
	if prefix := "bearer "; len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix) {
		text = strings.TrimLeft(text[len(prefix):], " \t")
	}
	switch {
	case text == "" || strings.EqualFold(text, "bearer"):
		return HostToken{}, Refuse(MissingHostToken, "B7", "the token is missing")
	case len(text) > maxHostTokenLength, strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return HostToken{}, Refuse(WrongHostToken, "B7", "the site does not know this token")
	}
	return HostToken{conceal(text)}, nil
}

// UnsealedHostToken is a host token with the data key of its box. With the key the box is wrapped for the next holder without another
// unsealing (J5).
type UnsealedHostToken struct {
	HostToken
	wrap, dataKey []byte
}

// Forget overwrites the data key. The caller calls it after the grant was refreshed.
func (u *UnsealedHostToken) Forget() {
	if u == nil {
		return
	}
	clear(u.dataKey)
	u.wrap = nil
}

// opens reports whether the data key is the key of this box.
func (u *UnsealedHostToken) opens(h sealedHost) bool {
	return u != nil && u.wrap != nil && bytes.Equal(u.wrap, h.wrap)
}

// sealedHost is the host token in a box whose data key only the holder of the grant's current secret can unwrap (J3).
type sealedHost struct{ box, wrap []byte }

const hostBox = "host"

// wrapSealers returns the sealers that only the holder of a secret of the grant can derive. They seal the data key (J2).
func wrapSealers(holder Secret, grant string, keys seal.KeyRing) (seal.Sealers, error) {
	return keys.HolderSealers(holder, seal.Binding{Kind: "wrap/" + string(holder.kind()), Owner: grant})
}

func sealHost(host HostToken, holder Secret, grant string, chance io.Reader, keys seal.KeyRing) (sealedHost, error) {
	dataKey := make([]byte, seal.KeySize)
	if _, err := io.ReadFull(chance, dataKey); err != nil {
		return sealedHost{}, fmt.Errorf("drawing a data key: %w", err)
	}
	defer clear(dataKey)
	inner, err := seal.NewSealer(dataKey, seal.Binding{Kind: hostBox, Owner: grant})
	if err != nil {
		return sealedHost{}, err
	}
	outer, err := wrapSealers(holder, grant, keys)
	if err != nil {
		return sealedHost{}, err
	}
	return sealedHost{box: inner.Seal([]byte(host.Reveal())), wrap: outer.Seal(dataKey)}, nil
}

// dataKey unwraps with the holder's secret; a failure is ErrHostTokenLost.
func (h sealedHost) dataKey(holder Secret, grant string, keys seal.KeyRing) ([]byte, error) {
	outer, err := wrapSealers(holder, grant, keys)
	if err != nil {
		return nil, err
	}
	dataKey, err := outer.Open(h.wrap)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHostTokenLost, err)
	}
	return dataKey, nil
}

func (h sealedHost) open(holder Secret, grant string, keys seal.KeyRing) (*UnsealedHostToken, error) {
	dataKey, err := h.dataKey(holder, grant, keys)
	if err != nil {
		return nil, err
	}
	opened := &UnsealedHostToken{wrap: h.wrap, dataKey: dataKey}
	inner, err := seal.NewSealer(dataKey, seal.Binding{Kind: hostBox, Owner: grant})
	if err != nil {
		opened.Forget()
		return nil, err
	}
	text, err := inner.Open(h.box)
	if err != nil {
		opened.Forget()
		return nil, fmt.Errorf("%w: %w", ErrHostTokenLost, err)
	}
	opened.HostToken = HostToken{conceal(string(text))}
	return opened, nil
}

// rewrapFor wraps the data key for another holder (J4, J5, J8). The former holder can open the box only with the old wrap.
func (h sealedHost) rewrapFor(from, to Secret, grant string, keys seal.KeyRing) (sealedHost, error) {
	keys, err := keys.Snapshot()
	if err != nil {
		return sealedHost{}, err
	}
	dataKey, err := h.dataKey(from, grant, keys)
	if err != nil {
		return sealedHost{}, err
	}
	defer clear(dataKey)
	return h.rewrapDataKey(dataKey, to, grant, keys)
}

// rewrapDataKey wraps the given data key for a holder.
func (h sealedHost) rewrapDataKey(dataKey []byte, to Secret, grant string, keys seal.KeyRing) (sealedHost, error) {
	outer, err := wrapSealers(to, grant, keys)
	if err != nil {
		return sealedHost{}, err
	}
	return sealedHost{box: h.box, wrap: outer.Seal(dataKey)}, nil
}
