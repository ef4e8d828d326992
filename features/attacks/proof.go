package main

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// demand is a page that demands work, or a wait, before the token is checked.
type demand struct {
	form
	challenge  string
	bits       int
	iterations int           // of PBKDF2 for each try
	wait       time.Duration // of browsers without script; 0 when they cannot go on
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
	number := func(name string) int { n, _ := strconv.Atoi(f.attributes[name]); return n }
	d.bits, d.iterations, d.wait = number("data-bits"), number("data-iterations"),
		time.Duration(number("data-wait"))*time.Second
	return d, d.challenge != "" && d.bits > 0 && d.iterations > 0
}

// solved returns the form with the nonce that the page's script would find.
func (d demand) solved() url.Values { return d.filled(url.Values{"nonce": {d.solve()}}) }

// solve finds a decimal nonce whose key begins with enough zero bits.
func (d demand) solve() string {
	for n := uint64(0); ; n++ {
		nonce := strconv.FormatUint(n, 10)
		key, err := pbkdf2.Key(sha256.New, nonce, []byte(d.challenge), d.iterations, 4)
		if err == nil && bits.LeadingZeros32(binary.BigEndian.Uint32(key)) >= d.bits {
			return nonce
		}
	}
}
