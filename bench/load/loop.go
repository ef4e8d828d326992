package load

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Operation is the work that one client repeats.
type Operation func(client int) error

// ErrNothingLeft ends a client that has used up its tokens.
var ErrNothingLeft = errors.New("the client has no tokens left")

// Loop runs operations of several clients against a server.
type Loop struct {
	Clients int
	Warmup  time.Duration // time before the measurement
	Length  time.Duration // time in which operations start; 0: until all clients return ErrNothingLeft
	// Operations per second of all clients together; 0: each client continues as soon as it has its
	// response.
	Rate float64
	Mark func() // called when the measurement starts
}

// Latencies are sorted.
type Latencies []time.Duration

// Quantile returns the latency that the share q of all operations did not exceed.
func (l Latencies) Quantile(q float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	return l[min(int(q*float64(len(l))), len(l)-1)]
}

type watch struct {
	begins, ends time.Time
	failed       atomic.Pointer[error]
}

// Run returns the latencies of the operations that ended after the warmup, and the measuring time.
// It measures until the last operation has ended, so that slow ones count too. One failed operation
// fails the run.
func (l Loop) Run(do Operation) (Latencies, time.Duration, error) {
	w := &watch{begins: time.Now().Add(l.Warmup)}
	w.ends = w.begins.Add(l.Length)
	if l.Length == 0 {
		w.ends = w.begins.Add(time.Hour)
	}
	each, all := make([]Latencies, l.Clients), sync.WaitGroup{}
	for client := range l.Clients {
		all.Go(func() { each[client] = l.client(w, client, do) })
	}
	time.Sleep(time.Until(w.begins))
	l.Mark()
	all.Wait()
	length := time.Since(w.begins)
	if failed := w.failed.Load(); failed != nil {
		return nil, 0, *failed
	}
	latencies := slices.Concat(each...)
	slices.Sort(latencies)
	return latencies, length, nil
}

func (l Loop) client(w *watch, client int, do Operation) (took Latencies) {
	took = make(Latencies, 0, 1<<12)
	next := w.begins.Add(-l.Warmup)
	interval := time.Duration(0)
	if l.Rate > 0 {
		interval = time.Duration(float64(l.Clients) / l.Rate * float64(time.Second))
		next = next.Add(interval * time.Duration(client) / time.Duration(l.Clients))
	}
	for began := time.Now(); began.Before(w.ends) && w.failed.Load() == nil; began = time.Now() {
		if l.Rate > 0 {
			if next.After(w.ends) {
				return took
			}
			for time.Now().Before(next) {
				runtime.Gosched() // time.Sleep would wake too late
			}
			began, next = next, next.Add(interval)
		}
		if err := do(client); errors.Is(err, ErrNothingLeft) {
			return took
		} else if err != nil {
			w.failed.CompareAndSwap(nil, &err)
			return nil
		}
		if ended := time.Now(); ended.After(w.begins) {
			took = append(took, ended.Sub(began))
		}
	}
	return took
}
