package credential

// bits is a set of positions in a pattern.
type bits []uint64

// newBits returns an empty set of positions below the length.
func newBits(length int) bits { return make(bits, (length+63)/64) }

func (b bits) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

func (b bits) set(i int) { b[i/64] |= 1 << (i % 64) }

func (b bits) add(other bits) {
	for w := range b {
		b[w] |= other[w]
	}
}

func (b bits) isEmpty() bool {
	for _, word := range b {
		if word != 0 {
			return false
		}
	}
	return true
}

// keep removes the positions that are not in a mask, which may be shorter.
func (b bits) keep(mask bits) {
	for w := range b {
		if w < len(mask) {
			b[w] &= mask[w]
		} else {
			b[w] = 0
		}
	}
}

// down subtracts one from each position.
func (b bits) down() {
	for w := range b {
		b[w] >>= 1
		if w+1 < len(b) {
			b[w] |= b[w+1] << 63
		}
	}
}

// up adds one to each position.
func (b bits) up() {
	for w := len(b) - 1; w >= 0; w-- {
		b[w] <<= 1
		if w > 0 {
			b[w] |= b[w-1] >> 63
		}
	}
}

// ring has a set for each of the last positions of a text.
type ring struct {
	words int
	all   bits
}

func newRing(length int) ring {
	words := len(newBits(length))
	return ring{words, make(bits, words*(longestUnit+1))}
}

func (r ring) at(position int) bits {
	first := position % (longestUnit + 1) * r.words
	return r.all[first : first+r.words]
}
