package persistence

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Writes that were answered", Label("H5", "I19"), func() {
	It("are not lost, whenever the process dies", func(ctx SpecContext) {
		directory := GinkgoT().TempDir()
		var answered []string
		for life := range 10 {
			answered = append(answered, killed(ctx, filepath.Join(directory, "oauth.db"), life, 50+20*life)...)
		}
		found := listed(ctx, openIn(directory))
		for _, id := range answered {
			_, there := slices.BinarySearch(found, id)
			Expect(there).To(BeTrue(), "%s was answered and is lost", id)
		}
	}, NodeTimeout(time.Minute))
})

// addVariable makes this test binary add grants to the file that it names, many at a time, and
// print each id once it is answered.
const addVariable = "PERSISTENCE_ADD_GRANTS_TO"

func addGrantsTo(file string) {
	store, err := OpenSQLite(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	var output sync.Mutex
	for worker := range 32 {
		go func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%s-%d-%d", os.Getenv("LIFE"), worker, i)
				if err := keep(context.Background(), store, aGrant(id)); err != nil {
					id = err.Error()
				}
				output.Lock()
				fmt.Println(id)
				output.Unlock()
			}
		}()
	}
	select {}
}

// killed returns what a process has answered until it was killed, after so many answers.
func killed(ctx context.Context, file string, life, answers int) (answered []string) {
	GinkgoHelper()
	process := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestPersistence$")
	process.Env = append(os.Environ(), addVariable+"="+file, "LIFE="+strconv.Itoa(life))
	output, err := process.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(process.Start()).To(Succeed())
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		Expect(lines.Text()).To(HavePrefix("%d-", life))
		answered = append(answered, lines.Text())
		if len(answered) == answers {
			Expect(process.Process.Kill()).To(Succeed())
		}
	}
	_ = process.Wait() // it was killed
	Expect(len(answered)).To(BeNumerically(">=", answers))
	return answered
}
