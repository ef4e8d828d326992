package jsonrpc

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

const (
	// firstRoom is what a body gets at first. A longer one gets its room as it comes, because its length may only be claimed.
	firstRoom = 4 << 10
)

// BodyMemory bounds the memory that request bodies take at once, over all servers that share it. A body keeps its memory until it is
// answered or refused. Small bodies have an eighth to themselves, so that large ones do not keep them out, and of each part one owner may
// take a quarter.
type BodyMemory struct{ small, large pool }

const (
	smallBody    = 64 << 10
	smallPart    = 8
	shareOfOwner = 4
)

// NewBodyMemory bounds it to that many bytes.
func NewBodyMemory(limit int64) *BodyMemory {
	return &BodyMemory{small: newPool(limit / smallPart), large: newPool(limit - limit/smallPart)}
}

func (b *BodyMemory) poolFor(length int64) *pool {
	if length <= smallBody {
		return &b.small
	}
	return &b.large
}

// pool is memory that bodies take.
type pool struct {
	limit int64

	mu      sync.Mutex
	used    int64
	byOwner map[string]int64
}

func newPool(limit int64) pool { return pool{limit: limit, byOwner: map[string]int64{}} }

// take reports whether a body that has had bytes of an owner gets more. The only body, of all or of its owner, always does.
func (p *pool) take(owner string, had, more int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	beyond := p.used > had && p.used+more > p.limit
	beyondShare := p.byOwner[owner] > had && p.byOwner[owner]+more > p.limit/shareOfOwner
	if beyond || beyondShare {
		return false
	}
	p.used += more
	p.byOwner[owner] += more
	return true
}

func (p *pool) give(owner string, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= bytes
	if p.byOwner[owner] -= bytes; p.byOwner[owner] == 0 {
		delete(p.byOwner, owner)
	}
}

// Reserve begins a reservation that takes nothing yet. The owner is the subject who sends the body.
func (b *BodyMemory) Reserve(owner string) Reservation { return Reservation{of: b, owner: owner} }

// Reservation is the memory of one body. The zero value has none.
type Reservation struct {
	of    *BodyMemory
	owner string
	from  *pool
	taken int64
}

// ErrNoMemory means that there is no memory for a body now.
var ErrNoMemory = errors.New("the messages under way, of all or of this person, take the memory that there is for them")

// Extend reserves memory for a body of that length.
func (r *Reservation) Extend(length int64) error {
	if length <= r.taken {
		return nil
	}
	from := r.of.poolFor(length)
	had := r.taken
	if from != r.from {
		had = 0
	}
	if !from.take(r.owner, had, length-had) {
		return ErrNoMemory
	}
	if from != r.from {
		r.Release()
	}
	r.from, r.taken = from, length
	return nil
}

// Release returns the memory, and may be repeated.
func (r *Reservation) Release() {
	if r.taken > 0 {
		r.from.give(r.owner, r.taken)
		r.taken = 0
	}
}

// TooLargeError means that a body is longer than its limit.
type TooLargeError struct{ limit int64 }

func (e TooLargeError) Error() string {
	return fmt.Sprintf("the body has more than %d bytes, the limit that max-request-body sets (WithMaxRequestBody in Go)", e.limit)
}

// ReadBody reserves memory as the body comes, because its length may only be claimed. After a refusal it reads on, so that a client which is
// still sending sees the answer and not a closed connection.
func ReadBody(r *http.Request, limit int64, reserved *Reservation) ([]byte, error) {
	body, err := readBody(r, limit, reserved)
	if errors.Is(err, ErrNoMemory) || errors.As(err, new(TooLargeError)) {
		reserved.Release() // the rest takes no memory, and as long as the client sends
		_, _ = io.CopyN(io.Discard, r.Body, limit)
	}
	return body, err
}

func readBody(r *http.Request, limit int64, reserved *Reservation) (body []byte, err error) {
	said := max(0, min(r.ContentLength, limit))
	for err == nil {
		if len(body) == cap(body) {
			room := roomFor(int64(len(body)), said, limit)
			if err := reserved.Extend(room + 1); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, room+1), body...) // one more, to see the end or what is too much
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

// roomFor grows a body to what was said of it, and beyond that to the limit.
func roomFor(length, said, limit int64) int64 {
	room := max(firstRoom, 2*length)
	if length <= said {
		return min(room, said)
	}
	return min(room, limit)
}
