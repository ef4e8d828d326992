package persistence

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A race of the end of a grant against its use", Label("E9", "I22", "G7"), func() {
	neverShowsAnEndedGrant := func(rounds int) {
		It("never shows a grant alive after its end was answered by another process", func(ctx SpecContext) {
			directory := GinkgoT().TempDir()
			store := openIn(directory)
			ending := newEnding(filepath.Join(directory, "oauth.db"))
			race(ctx, rounds, store, store, func(string) { ending.end() })
		}, NodeTimeout(time.Hour))

		It("never shows a grant alive after its end was answered in one process", func(ctx SpecContext) {
			store := openFresh()
			race(ctx, rounds, store, store, func(id string) { end(ctx, store, id) })
		}, NodeTimeout(time.Hour))

		It("never shows a grant alive after its end was answered by another store on the same file",
			func(ctx SpecContext) {
				directory := GinkgoT().TempDir()
				mine, theirs := openIn(directory), openIn(directory)
				race(ctx, rounds, mine, theirs, func(id string) { end(ctx, theirs, id) })
			}, NodeTimeout(time.Hour))
	}

	Context("in 50 rounds", func() { neverShowsAnEndedGrant(50) })
	Context("in 2000 rounds", Label("soak"), func() { neverShowsAnEndedGrant(2000) })
})

// race lets a few use a grant while end ends it.
func race(ctx context.Context, rounds int, mine, theirs *Store, end func(id string)) {
	GinkgoHelper()
	for range rounds {
		Expect(keep(ctx, theirs, aGrant("g"))).To(Succeed())
		var answered atomic.Bool
		var users sync.WaitGroup
		for range 3 {
			users.Go(func() {
				defer GinkgoRecover()
				for last := false; !last; {
					last = answered.Load()
					Expect(ended(ctx, mine, "g") || !last).To(BeTrue(), "used after its end was answered")
				}
			})
		}
		end("g")
		answered.Store(true)
		users.Wait()
		Expect(theirs.writer.Exec("DELETE FROM grants").Error).To(Succeed())
	}
}

// ending is another process, which ends the grant whenever it is told to.
type ending struct {
	input  io.Writer
	output *bufio.Scanner
}

// endsVariable makes this test binary end the grant in the file that it names, at every line that
// it reads.
const endsVariable = "PERSISTENCE_END_GRANTS_IN"

func newEnding(file string) *ending {
	GinkgoHelper()
	process := exec.Command(os.Args[0], "-test.run=^TestPersistence$") // ends with its input
	process.Env = append(os.Environ(), endsVariable+"="+file)
	input, err := process.StdinPipe()
	Expect(err).NotTo(HaveOccurred())
	output, err := process.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(process.Start()).To(Succeed())
	DeferCleanup(func() {
		Expect(input.Close()).To(Succeed())
		Expect(process.Wait()).To(Succeed())
	})
	return &ending{input, bufio.NewScanner(output)}
}

func (e *ending) end() {
	GinkgoHelper()
	Expect(fmt.Fprintln(e.input)).To(Equal(1))
	Expect(e.output.Scan()).To(BeTrue())
	Expect(e.output.Text()).To(Equal("ended"))
}

func endGrantsIn(file string) {
	store, err := OpenSQLite(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(endGrant(store))
	}
	_ = store.Close()
}
