package oauth

import (
	"fmt"
	"slices"
	"time"

	"github.com/pasteport/pasteport/domain/seal"
)

// maxRotations is how many replaced refresh tokens a grant remembers.
const maxRotations = 4

// Rotation is the replacement of a refresh token. Its box contains the refresh token and the access
// token that the client got instead, sealed for the holder of the replaced one, so that a client
// that asks again gets them again.
type Rotation struct {
	Number     uint32    `json:"n"` // of the replaced refresh token
	Digest     Digest    `json:"d"` // of the replaced refresh token
	Access     uint32    `json:"a"` // number of the first access token that was issued with the successor
	Box        []byte    `json:"b,omitempty"`
	ReplacedAt time.Time `json:"r,omitzero"` // later if AccessGrant.repeat has begun the window again
}

// inGrace reports whether the grace window has not ended. The clock may have been set back by up to
// the length of the window.
func (r *Rotation) inGrace(settings *Settings, now time.Time) bool {
	age := now.Sub(r.ReplacedAt)
	return age < settings.RefreshGrace && age > -settings.RefreshGrace
}

// unused reports whether neither the successor nor an access token issued with it has been used.
func (r *Rotation) unused(g *AccessGrant) bool {
	return r.Number+1 == g.generation && g.lastUse.Access < r.Access
}

// findRotation returns the index of the token's replacement, -1 if the grant does not remember it.
func (g *AccessGrant) findRotation(replaced Secret) int {
	i := slices.IndexFunc(g.rotations, func(r Rotation) bool { return r.Number == replaced.number })
	if i < 0 || g.rotations[i].Digest != replaced.Digest() {
		return -1
	}
	return i
}

// addRotation remembers the replacement of a token, and forgets those that are not served any more.
func (g *AccessGrant) addRotation(replaced Secret, pair issued, settings *Settings, now time.Time) error {
	if settings.RefreshGrace == 0 {
		g.rotations = nil
		return nil
	}
	box, err := pair.sealFor(replaced, g.id, settings.Keys)
	if err != nil {
		return err
	}
	first := max(0, len(g.rotations)-maxRotations+1)
	for i := range g.rotations { // forget all up to the last expired one: newestFor needs an unbroken chain
		if !g.rotations[i].inGrace(settings, now) {
			first = max(first, i+1)
		}
	}
	g.rotations = append(slices.Clone(g.rotations[first:]), Rotation{
		Number:     replaced.number,
		Digest:     replaced.Digest(),
		Access:     pair.access.number,
		Box:        box,
		ReplacedAt: now,
	})
	return nil
}

// issued is a refresh token with the access token that was issued with it.
type issued struct{ refresh, access Secret }

// successorSealers returns sealers that only the holder of the replaced refresh token can derive.
func successorSealers(replaced Secret, grant string, keys seal.KeyRing) (seal.Sealers, error) {
	return keys.HolderSealers(replaced, seal.Binding{Kind: "successor", Owner: grant})
}

func (p issued) sealFor(replaced Secret, grant string, keys seal.KeyRing) ([]byte, error) {
	sealers, err := successorSealers(replaced, grant, keys)
	if err != nil {
		return nil, err
	}
	return sealers.Seal(append(p.refresh.content(), p.access.content()...)), nil
}

func (r *Rotation) open(replaced Secret, grant string, keys seal.KeyRing) (issued, error) {
	sealers, err := successorSealers(replaced, grant, keys)
	if err != nil {
		return issued{}, err
	}
	contents, err := sealers.Open(r.Box)
	if err != nil {
		return issued{}, fmt.Errorf("%w: %w", ErrHostTokenLost, err)
	}
	if len(contents) != 2*secretSize {
		return issued{}, fmt.Errorf("%w: the box of a successor has another content", ErrHostTokenLost)
	}
	return issued{
		refresh: restoreSecret(RefreshTokenSecret, contents[:secretSize]),
		access:  restoreSecret(AccessTokenSecret, contents[secretSize:]),
	}, nil
}

// newestFor walks from a replaced refresh token to the newest pair: each successor opens the box of
// the next one. It also returns the refresh token that the newest one replaced.
func (g *AccessGrant) newestFor(presented Secret, keys seal.KeyRing) (pair issued, before Secret, err error) {
	start := g.findRotation(presented)
	if start < 0 {
		return issued{}, Secret{}, fmt.Errorf("finding a successor: %w", ErrHostTokenLost)
	}
	pair.refresh = presented
	for i := range g.rotations[start:] {
		before = pair.refresh
		if pair, err = g.rotations[start+i].open(before, g.id, keys); err != nil {
			return issued{}, Secret{}, err
		}
	}
	return pair, before, nil
}
