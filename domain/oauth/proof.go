package oauth

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"time"
)

const (
	proofPurpose = "proof"
	proofTTL     = 5 * time.Minute
	minWait      = 2 * time.Second // before a browser tries again

	// ProofIterations is the cost of one try in iterations of PBKDF2-HMAC-SHA256 (RFC 8018), which
	// browsers compute natively.
	ProofIterations = 1024

	challengeLength = 22 // characters, 132 bits
)

// ProofDemand is the refusal of a guess that needs a proof of work first. It contains the sealed
// pasted token, so that the person does not have to paste it again.
type ProofDemand struct {
	error
	Sealed    string
	Challenge string
	Bits      int           // leading zero bits that the proof must have
	Wait      time.Duration // for browsers without script
}

// Unwrap returns the refusal as an *Error.
func (d *ProofDemand) Unwrap() error { return d.error }

// Proof is the state that ProofDemand.Sealed contains: a pasted token and the work that it needs.
type Proof struct {
	Host    HostToken // that the person pasted
	sealed  string
	bits    int
	readyAt time.Time // end of the wait for browsers without script
}

// NewProofDemand returns a *ProofDemand for a token that was pasted into the form of a ticket;
// ticket is "" for the connections page.
func NewProofDemand(host HostToken, ticket string, settings *Settings, now time.Time) error {
	proof := &Proof{Host: host, bits: settings.Limits.ProofBits, readyAt: now.Add(settings.Limits.ProofWait)}
	var err error
	proof.sealed, err = sealValues(settings.Keys, proofPurpose, settings.Issuer, "at", formatMillis(now),
		"ticket", ticket,
		"token", host.Reveal(), "ready", formatMillis(proof.readyAt), "bits", strconv.Itoa(proof.bits))
	if err != nil {
		return fmt.Errorf("sealing a demand for a proof: %w", err)
	}
	return proof.Demand(now)
}

// Demand returns the *ProofDemand, for the first time or after a wrong proof or an early retry.
func (p *Proof) Demand(now time.Time) error {
	wait := max(p.readyAt.Sub(now), minWait)
	refusal := RefuseFor(wait, TooManyGuesses, "B6, B18", "too many wrong tokens: a proof of work is needed")
	return &ProofDemand{
		error:     refusal,
		Sealed:    p.sealed,
		Challenge: p.challenge(),
		Bits:      p.bits,
		Wait:      wait,
	}
}

// OpenProof opens ProofDemand.Sealed of the same ticket. It refuses with InvalidTicket or
// ExpiredTicket.
func OpenProof(sealed, ticket string, settings *Settings, now time.Time) (*Proof, error) {
	values, issuedAt, err := openValues(settings, proofPurpose, sealed)
	if err != nil {
		return nil, err
	}
	if values.Get("ticket") != ticket {
		return nil, Refuse(InvalidTicket, "B18", "the proof is for another form")
	}
	if expired(issuedAt.Add(proofTTL), now) {
		return nil, Refuse(ExpiredTicket, "B18", "the proof is too old")
	}
	zeros, badBits := strconv.Atoi(values.Get("bits"))
	ready, badReady := strconv.ParseInt(values.Get("ready"), 10, 64)
	if err := errors.Join(badBits, badReady); err != nil {
		return nil, fmt.Errorf("reading a proof: %w", err)
	}
	return &Proof{
		Host:    HostToken{conceal(values.Get("token"))},
		sealed:  sealed,
		bits:    zeros,
		readyAt: time.UnixMilli(ready).UTC(),
	}, nil
}

// challenge binds the work to the sealed state, and thus to one token and one form.
func (p *Proof) challenge() string {
	sum := sha256.Sum256([]byte(p.sealed))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:challengeLength]
}

// Digest identifies the proof, so that a GuessLimit accepts it once.
func (p *Proof) Digest() Digest { return sha256.Sum256([]byte(p.sealed)) }

// Solved reports whether the nonce, a decimal number, is a valid proof of work.
func (p *Proof) Solved(nonce string) bool {
	if _, err := strconv.ParseUint(nonce, 10, 32); err != nil {
		return false
	}
	key, err := pbkdf2.Key(sha256.New, nonce, []byte(p.challenge()), ProofIterations, 4)
	return err == nil && bits.LeadingZeros32(binary.BigEndian.Uint32(key)) >= p.bits
}

// Waited reports whether the wait of a browser without script is over.
func (p *Proof) Waited(now time.Time) bool { return !now.Before(p.readyAt) }
