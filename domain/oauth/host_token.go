package oauth

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

const maxHostTokenLength = 4096

// HostToken is the site's own bearer token as a person pasted it. It prints as "[redacted]".
type HostToken struct{ confidential }

// ParseHostToken trims what people paste along (B7). Nothing left is MissingHostToken; what cannot be a token is
// WrongHostToken, "B7", as if the site had said so.
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

// OpenedHost is a host token and what its box was opened with, so that the box can be handed on without opening it once more (J5).
type OpenedHost struct {
	HostToken
	wrap, dataKey []byte
}

// Forget overwrites the data key; it comes when the box has been handed on.
func (o *OpenedHost) Forget() {
	if o == nil {
		return
	}
	clear(o.dataKey)
	o.wrap = nil
}

// opens reports that the box is still the one that was opened.
func (o *OpenedHost) opens(h sealedHost) bool {
	return o != nil && o.wrap != nil && bytes.Equal(o.wrap, h.wrap)
}

// sealedHost is the host token in a box whose data key only the holder of the grant's current secret can unwrap (J3).
type sealedHost struct{ box, wrap []byte }

const hostBox = "host"

func sealHost(host HostToken, holder Secret, grant string, chance io.Reader, keys Keys) (sealedHost, error) {
	dataKey := make([]byte, keyBytes)
	if _, err := io.ReadFull(chance, dataKey); err != nil {
		return sealedHost{}, fmt.Errorf("drawing a data key: %w", err)
	}
	defer clear(dataKey)
	inner, err := lockWith(dataKey, binding{hostBox, grant})
	if err != nil {
		return sealedHost{}, err
	}
	outer, err := keys.wrap(holder, grant)
	if err != nil {
		return sealedHost{}, err
	}
	return sealedHost{box: inner.seal([]byte(host.Reveal())), wrap: outer.seal(dataKey)}, nil
}

// dataKey unwraps with the holder's secret; a failure is ErrHostTokenLost.
func (h sealedHost) dataKey(holder Secret, grant string, keys Keys) ([]byte, error) {
	outer, err := keys.wrap(holder, grant)
	if err != nil {
		return nil, err
	}
	dataKey, err := outer.open(h.wrap)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHostTokenLost, err)
	}
	return dataKey, nil
}

func (h sealedHost) open(holder Secret, grant string, keys Keys) (*OpenedHost, error) {
	dataKey, err := h.dataKey(holder, grant, keys)
	if err != nil {
		return nil, err
	}
	opened := &OpenedHost{wrap: h.wrap, dataKey: dataKey}
	inner, err := lockWith(dataKey, binding{hostBox, grant})
	if err != nil {
		opened.Forget()
		return nil, err
	}
	text, err := inner.open(h.box)
	if err != nil {
		opened.Forget()
		return nil, fmt.Errorf("%w: %w", ErrHostTokenLost, err)
	}
	opened.HostToken = HostToken{conceal(string(text))}
	return opened, nil
}

// heldBy is the same box for another holder (J4, J5, J8). Whoever keeps only the new wrap shuts the former holder out.
func (h sealedHost) heldBy(from, to Secret, grant string, keys Keys) (sealedHost, error) {
	keys, err := keys.asOfNow()
	if err != nil {
		return sealedHost{}, err
	}
	dataKey, err := h.dataKey(from, grant, keys)
	if err != nil {
		return sealedHost{}, err
	}
	defer clear(dataKey)
	return h.under(dataKey, to, grant, keys)
}

// under is heldBy with the data key at hand.
func (h sealedHost) under(dataKey []byte, to Secret, grant string, keys Keys) (sealedHost, error) {
	outer, err := keys.wrap(to, grant)
	if err != nil {
		return sealedHost{}, err
	}
	return sealedHost{box: h.box, wrap: outer.seal(dataKey)}, nil
}
