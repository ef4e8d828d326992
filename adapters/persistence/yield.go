package persistence

import (
	"errors"
	"os"
	"runtime"
)

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
