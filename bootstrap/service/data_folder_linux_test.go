package service_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// asNobody calls do as a user without rights. Only a thread that ends with
// the call changes its user.
func asNobody(do func() error) error {
	GinkgoHelper()
	const unprivileged = 65534 // the user nobody
	if os.Geteuid() != 0 {
		return do()
	}
	result := make(chan error, 1)
	go func() {
		defer GinkgoRecover()
		defer close(result)
		runtime.LockOSThread() // without Unlock, so that the thread ends
		_, _, failed := syscall.RawSyscall(syscall.SYS_SETRESUID, unprivileged, unprivileged, unprivileged)
		Expect(failed).To(BeZero())
		result <- do()
	}()
	return <-result
}

var _ = Describe("Making the data folder", func() {
	var dir string
	BeforeEach(func() {
		var err error
		dir, err = os.MkdirTemp("", "data-folder")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, dir)
	})
	foreign := func(path string) error {
		return asNobody(func() error { return service.MakeDataDir(path) })
	}
	const says = `belongs to .+ \(?\d+\)? with mode .+, and this process runs as .+\d+`

	It("names the owner and the user if the folder cannot be written, and the setting if it cannot be made", func() {
		Expect(os.Chmod(dir, 0o555)).To(Succeed())
		Expect(foreign(dir)).To(MatchError(And(HavePrefix("opening the data folder: "+dir), MatchRegexp(says),
			ContainSubstring("--data"))))
		Expect(foreign(filepath.Join(dir, "a", "b"))).
			To(And(MatchError(fs.ErrPermission), MatchError(ContainSubstring("--data"))))
	})

	It("names the owner and the user if a database in it cannot be written", func() {
		Expect(os.Chmod(dir, 0o777)).To(Succeed())
		file := filepath.Join(dir, "oauth.db")
		Expect(os.WriteFile(file, nil, 0o400)).To(Succeed())
		Expect(foreign(dir)).To(MatchError(And(ContainSubstring(file+" cannot be written"), MatchRegexp(says))))
		Expect(os.Remove(file)).To(Succeed())
		Expect(foreign(dir)).To(Succeed())
	})
})
