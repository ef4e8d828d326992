package persistence

import "hash/maphash"

// retention selects the steps to delete: all but the newest of attempts that led to a grant, and
// all but the newest of the others. Call prove for all steps first, then count.
type retention struct {
	keep            int                 // of each
	proven          map[uint64]struct{} // hashes, because the texts would need many times the memory
	granted, others countedSteps
}

type countedSteps struct {
	kept      int
	exceeding []int64
}

// attemptSeed keeps clients from choosing attempts with equal hashes.
var attemptSeed = maphash.MakeSeed()

// prove marks the attempt of a step that is not connection.Unproven. A step without an attempt
// proves nothing.
func (r *retention) prove(attempt []byte) {
	if len(attempt) > 0 {
		r.proven[maphash.Bytes(attemptSeed, attempt)] = struct{}{}
	}
}

// count counts a step. Call it with the newest step first.
func (r *retention) count(number int64, attempt []byte) {
	steps := &r.others
	if _, proven := r.proven[maphash.Bytes(attemptSeed, attempt)]; proven {
		steps = &r.granted
	}
	if steps.kept++; steps.kept > r.keep {
		steps.exceeding = append(steps.exceeding, number)
	}
}

// exceeding returns the numbers of the steps to delete. Steps without a grant come first, in case
// the time is too short to delete all of them.
func (r *retention) exceeding() []int64 { return append(r.others.exceeding, r.granted.exceeding...) }
