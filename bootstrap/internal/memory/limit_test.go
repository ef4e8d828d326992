package memory

import (
	"math"
	"runtime/debug"
	"testing"

	_ "github.com/onsi/ginkgo/v2" // its flags, which "go test ./..." passes to every package
)

func TestLimit(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	whole := Limit()
	if whole < 64<<20 {
		t.Fatalf("this machine has %d bytes", whole)
	}
	debug.SetMemoryLimit(whole / 2)
	if half := Limit(); half != whole/2 {
		t.Fatalf("GOMEMLIMIT is %d, and the limit %d", whole/2, half)
	}
}
