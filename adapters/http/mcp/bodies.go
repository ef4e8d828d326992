package mcp

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"golang.org/x/sync/semaphore"
)

const (
	defaultMaxBody = 4 << 20
	defaultBodies  = 256 << 20
	// firstRoom is what a body gets at first. A longer one gets its room as it comes, because its length may only be claimed.
	firstRoom     = 4 << 10
	tooManyBodies = "Too many messages are under way"
)

// Bodies bounds the memory that request bodies take at once, over all servers that share it. A body has its place until it is answered.
type Bodies struct {
	limit int64
	free  *semaphore.Weighted
}

// NewBodies bounds them to that many bytes.
func NewBodies(limit int64) *Bodies { return &Bodies{limit, semaphore.NewWeighted(limit)} }

// place is what one body has taken of the memory for all.
type place struct {
	of    *Bodies
	taken int64
}

// errCrowded means that there is no memory for a body now.
var errCrowded = errors.New("the bodies under way take all memory that there is for them")

// extend takes place for a body of that length. One longer than all memory for bodies may take it alone.
func (p *place) extend(length int64) error {
	more := min(length, p.of.limit) - p.taken
	if more <= 0 {
		return nil
	}
	if !p.of.free.TryAcquire(more) {
		return errCrowded
	}
	p.taken += more
	return nil
}

// release gives it back, and may be repeated.
func (p *place) release() {
	if p.taken > 0 {
		p.of.free.Release(p.taken)
		p.taken = 0
	}
}

// bodyTooLarge means that a body is longer than its limit.
type bodyTooLarge struct{ limit int64 }

func (e bodyTooLarge) Error() string {
	return fmt.Sprintf("the body has more than %d bytes, the limit that max-request-body sets (WithMaxRequestBody in Go)", e.limit)
}

// readBody takes at once the place of what a request says that it has, so that what has begun can be finished, and more as it comes: a host's
// middleware may have unpacked the body.
func readBody(r *http.Request, limit int64, its *place) (body []byte, err error) {
	said := max(0, min(r.ContentLength, limit))
	if err := its.extend(said + 1); err != nil {
		return nil, err
	}
	for err == nil {
		if len(body) == cap(body) {
			room := roomFor(int64(len(body)), said, limit)
			if err := its.extend(room + 1); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, room+1), body...) // one more, to see the end or what is too much
		}
		var n int
		n, err = r.Body.Read(body[len(body):cap(body)])
		if body = body[:len(body)+n]; int64(len(body)) > limit {
			return nil, bodyTooLarge{limit}
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
