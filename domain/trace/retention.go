package trace

import "hash/maphash"

// Retention finds out which steps are too many: those beyond the newest of attempts that came to a grant, and of all others, so that
// strangers who knock cannot push out what belongs to a grant. First it is told what is proven, then it counts.
type Retention struct {
	seed            maphash.Seed
	proven          map[uint64]struct{} // hashes: texts would take many times the memory, and nobody can bring about two that are the same
	granted, others share
}

// share are steps that are counted together.
type share struct {
	keep, size int
	exceeding  []int64
}

// Retain keeps so many of either.
func Retain(keep int) *Retention {
	return &Retention{seed: maphash.MakeSeed(), proven: map[uint64]struct{}{}, granted: share{keep: keep}, others: share{keep: keep}}
}

// Prove is told the attempt of each step that is not Unproven. A step without an attempt proves nothing.
func (r *Retention) Prove(attempt []byte) {
	if len(attempt) > 0 {
		r.proven[maphash.Bytes(r.seed, attempt)] = struct{}{}
	}
}

// Count is told each step, the newest first.
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

// Exceeding are the numbers of those that are too many. The others come first: a step without its proof is one of theirs, should there be
// no time for all.
func (r *Retention) Exceeding() []int64 { return append(r.others.exceeding, r.granted.exceeding...) }
