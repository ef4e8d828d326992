package message

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// initialCapacity is the buffer for a body of any announced length, because a client may announce
// more than it sends.
const initialCapacity = 4 << 10

// BodyMemory limits the memory of the request bodies of all servers that share it. A body uses
// memory until its response ends. An eighth is for small bodies, so that large ones do not block
// them. One owner may use a quarter of each part.
type BodyMemory struct{ small, large pool }

const (
	maxSmallBody = 64 << 10
	smallDivisor = 8
	ownerDivisor = 4
)

// NewBodyMemory returns a BodyMemory of limit bytes.
func NewBodyMemory(limit int64) *BodyMemory {
	return &BodyMemory{small: newPool(limit / smallDivisor), large: newPool(limit - limit/smallDivisor)}
}

// pool counts the memory of bodies.
type pool struct {
	limit int64

	mu      sync.Mutex
	used    int64
	byOwner map[string]int64
}

func newPool(limit int64) pool { return pool{limit: limit, byOwner: map[string]int64{}} }

// reserve reserves more bytes for a body that has some already, and returns false beyond a limit.
// A limit of the pool or of an owner does not apply to their only body.
func (p *pool) reserve(owner string, has, more int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	beyond := p.used > has && p.used+more > p.limit
	beyondShare := p.byOwner[owner] > has && p.byOwner[owner]+more > p.limit/ownerDivisor
	if beyond || beyondShare {
		return false
	}
	p.used += more
	p.byOwner[owner] += more
	return true
}

// Reserve returns an empty reservation for a body of the owner, the subject of its sender.
func (b *BodyMemory) Reserve(owner string) Reservation { return Reservation{memory: b, owner: owner} }

// Reservation is the memory of one body. The zero value has none.
type Reservation struct {
	memory   *BodyMemory
	owner    string
	pool     *pool
	reserved int64
}

// ErrNoMemory means that a limit of the BodyMemory is reached.
var ErrNoMemory = errors.New("the bodies of all requests, or of those of this person, use all memory for bodies")

// Extend reserves memory for a body of that length, or returns ErrNoMemory.
func (r *Reservation) Extend(length int64) error {
	if length <= r.reserved {
		return nil
	}
	pool, has := &r.memory.large, r.reserved
	if length <= maxSmallBody {
		pool = &r.memory.small
	}
	if pool != r.pool {
		has = 0
	}
	if !pool.reserve(r.owner, has, length-has) {
		return ErrNoMemory
	}
	if pool != r.pool {
		r.Release()
	}
	r.pool, r.reserved = pool, length
	return nil
}

// Release returns the memory, and may be repeated.
func (r *Reservation) Release() {
	if r.reserved == 0 {
		return
	}
	p := r.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= r.reserved
	if p.byOwner[r.owner] -= r.reserved; p.byOwner[r.owner] == 0 {
		delete(p.byOwner, r.owner)
	}
	r.reserved = 0
}

// TooLargeError means that a body is longer than the limit.
type TooLargeError struct{ limit int64 }

func (e TooLargeError) Error() string {
	return fmt.Sprintf(
		"the body has more than %d bytes, the limit that max-request-body sets (WithMaxRequestBody in Go)", e.limit)
}

// ReadBody reads a body and reserves memory for the bytes that arrive. If a body is too large, it
// reads and discards the rest, so that a client that is still sending gets the response and not a
// closed connection.
func ReadBody(r *http.Request, limit int64, reserved *Reservation) ([]byte, error) {
	body, err := readBody(r, limit, reserved)
	if errors.Is(err, ErrNoMemory) || errors.As(err, new(TooLargeError)) {
		reserved.Release() // reading the rest takes time, but no memory
		_, _ = io.CopyN(io.Discard, r.Body, limit)
	}
	return body, err
}

func readBody(r *http.Request, limit int64, reserved *Reservation) (body []byte, err error) {
	announced := max(0, min(r.ContentLength, limit))
	for err == nil {
		if len(body) == cap(body) {
			length, most := int64(len(body)), announced
			if length > announced { // its length was not announced
				most = limit
			}
			capacity := min(max(initialCapacity, 2*length), most)
			if err := reserved.Extend(capacity + 1); err != nil {
				return nil, err
			}
			// One more byte, to detect the end or a body that is too long.
			body = append(make([]byte, 0, capacity+1), body...)
		}
		var n int
		n, err = r.Body.Read(body[len(body):cap(body)])
		if body = body[:len(body)+n]; int64(len(body)) > limit {
			return nil, TooLargeError{limit}
		}
	}
	if err == io.EOF {
		return body, nil
	}
	return nil, err
}
