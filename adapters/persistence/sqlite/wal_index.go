package sqlite

import (
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"
)

// walIndex is a mapped WAL index, which is read without a system call. The page stays mapped until the walIndex is garbage.
type walIndex struct {
	file   *os.File
	mapped *walIndexHead
}

// head returns the head. While a commit changes it, the result is a mixture that matches no version. It is zero when another process has truncated
// the file, which the system reports by a fault.
func (i *walIndex) head() (head walIndexHead) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			head = walIndexHead{}
		}
	}()
	for word := range head {
		head[word] = atomic.LoadUint32(&i.mapped[word])
	}
	runtime.KeepAlive(i)
	return head
}

// walIndexes are the WAL indexes that this process has opened. None is closed while the process has a connection to any file: closing a file
// releases the locks that SQLite holds on it (https://www.sqlite.org/howtocorrupt.html, section 2.2).
var walIndexes struct {
	sync.Mutex
	connections int
	open        []*walIndex
}

func openWALIndex(path string) (*walIndex, error) {
	walIndexes.Lock()
	defer walIndexes.Unlock()
	found, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	for _, index := range walIndexes.open {
		if known, err := index.file.Stat(); err == nil && os.SameFile(known, found) {
			return index, index.mapHead()
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	opened := &walIndex{file: file}
	walIndexes.open = append(walIndexes.open, opened)
	return opened, opened.mapHead()
}

func (i *walIndex) mapHead() error {
	if i.mapped != nil {
		return nil
	}
	page, err := mapPage(i.file)
	if err != nil {
		return errors.Join(errNoVersion, err)
	}
	i.mapped = (*walIndexHead)(unsafe.Pointer(unsafe.SliceData(page))) //nolint:gosec // a page is longer and stands at a multiple of its length
	runtime.AddCleanup(i, unmapPage, page)
	return nil
}

// countConnection is called before a connection is opened, and discountConnection after it was closed.
func countConnection() {
	walIndexes.Lock()
	defer walIndexes.Unlock()
	walIndexes.connections++
}

func discountConnection() {
	walIndexes.Lock()
	defer walIndexes.Unlock()
	if walIndexes.connections--; walIndexes.connections > 0 {
		return
	}
	for _, index := range walIndexes.open {
		_ = index.file.Close()
	}
	walIndexes.open = nil
}
