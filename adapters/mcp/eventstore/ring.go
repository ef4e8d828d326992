package eventstore

const chunkBytes = 64 << 10

// ring is a ring buffer. It allocates chunk by chunk up to its capacity. Positions count all bytes
// that were ever written; those from begin to end can be read.
type ring struct {
	begin, end uint64
	chunks     [][]byte
}

func newRing(bytes int) ring { return ring{chunks: make([][]byte, max(1, bytes/chunkBytes))} }

func (r *ring) capacity() int { return len(r.chunks) * chunkBytes }

func (r *ring) room() int { return r.capacity() - int(r.end-r.begin) }

// from returns the rest of the chunk at a position. It allocates the chunk on its first use.
func (r *ring) from(position uint64) []byte {
	chunk := &r.chunks[position/chunkBytes%uint64(len(r.chunks))]
	if *chunk == nil {
		*chunk = make([]byte, chunkBytes)
	}
	return (*chunk)[position%chunkBytes:]
}

// write appends bytes. The ring must have room for them.
func (r *ring) write(bytes []byte) {
	for len(bytes) > 0 {
		n := copy(r.from(r.end), bytes)
		bytes, r.end = bytes[n:], r.end+uint64(n)
	}
}

// read fills bytes, starting at a position.
func (r *ring) read(position uint64, bytes []byte) {
	for len(bytes) > 0 {
		n := copy(bytes, r.from(position))
		bytes, position = bytes[n:], position+uint64(n)
	}
}
