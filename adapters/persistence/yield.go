package persistence

import (
	"errors"
	"os"
	"runtime"
	"time"
)

const (
	rounds   = 2                    // answers go out, and then what their clients ask next comes in
	dear     = 4 * time.Millisecond // for each who joins, who are many where this pays
	crowding = 500                  // transactions until the next try
)

// giveWay lets those join who are about to write; where several wrote together, more are. Where others keep every processor busy, that takes
// longer than it saves: Go's scheduler looks at the network every 10 ms then.
func (g *group) giveWay(several bool) {
	if !several || g.crowded > 0 {
		g.crowded = max(0, g.crowded-1)
		runtime.Gosched()
		return
	}
	began, before := time.Now(), g.length()
	for range rounds {
		g.yield.once()
	}
	if joined := g.length() - before; time.Since(began) > dear*time.Duration(1+joined) {
		g.crowded = crowding
	}
}

// yield lets everybody else go first: whoever is ready to run, and whoever something has arrived for over the network. Go's scheduler looks there
// when nobody is ready to run, which whoever calls runtime.Gosched always is.
type yield struct{ in, out *os.File }

func newYield() (*yield, error) {
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &yield{in, out}, nil
}

// once waits for what it writes to itself, which arrives with all that has arrived before; those whom that has woken then go first.
func (y *yield) once() {
	go func() { _, _ = y.out.Write([]byte{0}) }()
	_, _ = y.in.Read(make([]byte, 1))
	runtime.Gosched()
}

// Close lets go of the pipe; whoever waits for it goes on.
func (y *yield) Close() error { return errors.Join(y.in.Close(), y.out.Close()) }
