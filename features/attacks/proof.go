package main

import (
	"crypto/sha256"
	"math/bits"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// demand is a page that wants work, or a wait, before it goes on with what was sent.
type demand struct {
	form
	challenge string
	bits      int
	wait      time.Duration // of browsers without script
}

// demandIn finds the demand of a page.
func demandIn(page answer) (d demand, found bool) {
	if page.status != http.StatusTooManyRequests {
		return d, false
	}
	f, err := formIn(page)
	if err != nil {
		return d, false
	}
	d.form, d.challenge = f, f.attributes["data-challenge"]
	d.bits, err = strconv.Atoi(f.attributes["data-bits"])
	seconds, _ := strconv.Atoi(f.attributes["data-wait"])
	d.wait = time.Duration(seconds) * time.Second
	return d, err == nil && d.challenge != ""
}

// solved returns the form with the nonce that the page's script would find.
func (d demand) solved() url.Values {
	return d.filled(url.Values{"nonce": {solve(d.challenge, d.bits)}})
}

// solve finds a decimal nonce with which the hash of challenge:nonce begins with that many zero bits.
func solve(challenge string, zeros int) string {
	text := []byte(challenge + ":")
	prefix := len(text)
	for nonce := uint64(0); ; nonce++ {
		text = strconv.AppendUint(text[:prefix], nonce, 10)
		if sum := sha256.Sum256(text); leadingZeros(sum) >= zeros {
			return string(text[prefix:])
		}
	}
}

func leadingZeros(sum [sha256.Size]byte) (zeros int) {
	for _, b := range sum {
		zeros += bits.LeadingZeros8(b)
		if b != 0 {
			break
		}
	}
	return zeros
}
