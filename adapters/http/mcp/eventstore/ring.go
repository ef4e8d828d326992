package eventstore

const chunkBytes = 64 << 10

// ring is a ring buffer. It allocates chunk by chunk up to its capacity. Positions count all bytes that were ever written; those from begin to end can
// be read.
type ring struct {
	begin, end uint64
	chunks     [][]byte
}

func newRing(bytes int) ring { return ring{chunks: make([][]byte, max(1, bytes/chunkBytes))} }

func (r *ring) capacity() int { return len(r.chunks) * chunkBytes }

func (r *ring) room() int { return r.capacity() - int(r.end-r.begin) }

// from is what follows the place in its chunk.
func (r *ring) from(place uint64) []byte {
	chunk := &r.chunks[place/chunkBytes%uint64(len(r.chunks))]
	if *chunk == nil {
		*chunk = make([]byte, chunkBytes)
	}
	return (*chunk)[place%chunkBytes:]
}

// write adds bytes, for which there has to be room.
func (r *ring) write(bytes []byte) {
	for len(bytes) > 0 {
		n := copy(r.from(r.end), bytes)
		bytes, r.end = bytes[n:], r.end+uint64(n)
	}
}

// read fills bytes with what is kept from the place on.
func (r *ring) read(place uint64, bytes []byte) {
	for len(bytes) > 0 {
		n := copy(bytes, r.from(place))
		bytes, place = bytes[n:], place+uint64(n)
	}
}
