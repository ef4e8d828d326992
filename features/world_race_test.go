package features_test

import (
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
)

// parallelCalls is how many callers raceCalls has.
const parallelCalls = 64

// raceCalls makes callers call until change was answered, and once more. A late call began after
// the answer.
func raceCalls(change func(), call func(caller int, late bool)) {
	GinkgoHelper()
	var answered atomic.Bool
	var begun, callers sync.WaitGroup
	begun.Add(parallelCalls)
	for i := range parallelCalls {
		callers.Go(func() {
			defer GinkgoRecover()
			started := sync.OnceFunc(begun.Done)
			defer started()
			for late := false; !late; {
				late = answered.Load()
				call(i, late)
				started()
			}
		})
	}
	begun.Wait()
	change()
	answered.Store(true)
	callers.Wait()
}
