package credential

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// pattern is a secret, or its base64 or hexadecimal, in the form of normalize. It is searched with
// the Shift-And algorithm of Baeza-Yates and Gonnet, so that the time for every text is its length
// times the words of a set of bits.
type pattern struct {
	text   string
	isCode bool
	masks  func() *[256]bits // where each byte is in the pattern
}

func newPattern(text string, isCode bool) pattern {
	text = normalize(text)
	return pattern{text, isCode, sync.OnceValue(func() *[256]bits {
		masks := new([256]bits)
		for i := range len(text) {
			if masks[text[i]] == nil {
				masks[text[i]] = newBits(len(text))
			}
			masks[text[i]].set(i)
		}
		return masks
	})}
}

// starts returns where occurrences of the pattern start, the last one first, or only that one. It
// reads the text backwards: bit i at a position means that the pattern from byte i on is read
// there.
func (p pattern) starts(from units, once bool) (found []int) {
	sets, read := newRing(len(p.text)), newBits(len(p.text))
	for at := len(from.text) - 1; at >= 0; at-- {
		here := sets.at(at)
		clear(here)
		plain, more := from.at(at)
		p.before(here, plain, sets, read)
		for _, u := range more {
			p.before(here, u, sets, read)
		}
		if here.has(0) {
			if found = append(found, at); once {
				return found
			}
		}
	}
	return found
}

func (p pattern) before(here bits, u unit, sets ring, read bits) {
	var text [utf8.UTFMax]byte
	copy(read, sets.at(u.next))
	for _, b := range slices.Backward(u.appendTo(text[:0])) {
		read.down()
		read.set(len(p.text) - 1) // the pattern may end with the byte
		read.keep(p.masks()[normalized(b)])
	}
	here.add(read)
}

// end returns the end of the longest occurrence that starts at a position. Bit i at a position
// means that the first i bytes of the pattern are read before it.
func (p pattern) end(from units, start int) (end int) {
	sets, read := newRing(len(p.text)+1), newBits(len(p.text)+1)
	sets.at(start).set(0)
	last := start
	for at := start; at <= last; at++ {
		here := sets.at(at)
		if here.has(len(p.text)) {
			end = at
		}
		if at < len(from.text) && !here.isEmpty() {
			plain, more := from.at(at)
			last = max(last, p.after(here, plain, sets, read))
			for _, u := range more {
				last = max(last, p.after(here, u, sets, read))
			}
		}
		clear(here)
	}
	return end
}

// after returns the end of the unit if the pattern goes on with it.
func (p pattern) after(here bits, u unit, sets ring, read bits) (end int) {
	var text [utf8.UTFMax]byte
	copy(read, here)
	for _, b := range u.appendTo(text[:0]) {
		read.keep(p.masks()[normalized(b)])
		read.up()
	}
	if read.isEmpty() {
		return 0
	}
	sets.at(u.next).add(read)
	return u.next
}

// spans returns the occurrences of the pattern that do not overlap.
func (p pattern) spans(from units) (found []span) {
	end := 0
	for _, start := range slices.Backward(p.starts(from, false)) {
		if start < end {
			continue
		}
		end = p.end(from, start)
		found = append(found, p.widened(from.text, span{start, end}))
	}
	return found
}

// widened returns all of the base64 or hexadecimal around an occurrence of a code.
func (p pattern) widened(text string, s span) span {
	if !p.isCode {
		return s
	}
	for s.from > 0 && isCode(text[s.from-1]) {
		s.from--
	}
	for s.to < len(text) && isCode(text[s.to]) {
		s.to++
	}
	for s.to < len(text) && text[s.to] == '=' {
		s.to++
	}
	return s
}

func isCode(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || strings.IndexByte("+/-_", b) >= 0
}
