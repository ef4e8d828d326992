package trace

import "hash/maphash"

// Retention selects the steps to delete: all but the newest of attempts that led to a grant, and all but the newest of the others. It counts the two
// separately, so that anonymous requests cannot displace steps of grants. Call Prove for all steps first, then Count.
type Retention struct {
	seed            maphash.Seed
	proven          map[uint64]struct{} // hashes with a random seed, because the texts would need many times the memory
	granted, others share
}

// share counts steps and collects those in excess of keep.
type share struct {
	keep, size int
	exceeding  []int64
}

// Retain returns a Retention that keeps the given number of steps of each share.
func Retain(keep int) *Retention {
	return &Retention{seed: maphash.MakeSeed(), proven: map[uint64]struct{}{}, granted: share{keep: keep}, others: share{keep: keep}}
}

// Prove marks the attempt of a step that is not Unproven. A step without an attempt proves nothing.
func (r *Retention) Prove(attempt []byte) {
	if len(attempt) > 0 {
		r.proven[maphash.Bytes(r.seed, attempt)] = struct{}{}
	}
}

// Count counts a step. Call it with the newest step first.
func (r *Retention) Count(number int64, attempt []byte) {
	if _, proven := r.proven[maphash.Bytes(r.seed, attempt)]; proven {
		r.granted.count(number)
		return
	}
	r.others.count(number)
}

func (s *share) count(number int64) {
	if s.size++; s.size > s.keep {
		s.exceeding = append(s.exceeding, number)
	}
}

// Exceeding returns the numbers of the steps to delete. Steps without a grant come first, in case there is no time to delete all.
func (r *Retention) Exceeding() []int64 { return append(r.others.exceeding, r.granted.exceeding...) }
