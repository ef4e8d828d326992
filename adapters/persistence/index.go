package persistence

import (
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"
)

// index is a WAL index that is mapped, so that it is read without a call of the system. What is mapped stays until nobody has the index
// any more.
type index struct {
	file   *os.File
	mapped *[indexHead]uint32
}

// head is its head at this moment, or something that it never was while a commit changes it, or nothing when somebody has emptied the file:
// then the system answers with a fault.
func (i *index) head() (head [indexHead]uint32) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			head = [indexHead]uint32{}
		}
	}()
	for word := range head {
		head[word] = atomic.LoadUint32(&i.mapped[word])
	}
	runtime.KeepAlive(i)
	return head
}

// indexes are the WAL indexes that this process has opened. None is closed while it has a connection to any file: closing a file takes
// away the locks that SQLite holds on it (https://www.sqlite.org/howtocorrupt.html, section 2.2).
var indexes struct {
	sync.Mutex
	connections int
	open        []*index
}

func openIndex(path string) (*index, error) {
	indexes.Lock()
	defer indexes.Unlock()
	found, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	for _, index := range indexes.open {
		if known, err := index.file.Stat(); err == nil && os.SameFile(known, found) {
			return index, index.mapHead()
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	opened := &index{file: file}
	indexes.open = append(indexes.open, opened)
	return opened, opened.mapHead()
}

func (i *index) mapHead() error {
	if i.mapped != nil {
		return nil
	}
	page, err := mapPage(i.file)
	if err != nil {
		return errors.Join(errNoIndex, err)
	}
	i.mapped = (*[indexHead]uint32)(unsafe.Pointer(unsafe.SliceData(page))) //nolint:gosec // a page is longer and stands at a multiple of its length
	runtime.AddCleanup(i, unmapPage, page)
	return nil
}

// connecting is called before a connection is opened, and disconnected after it was closed.
func connecting() {
	indexes.Lock()
	defer indexes.Unlock()
	indexes.connections++
}

func disconnected() {
	indexes.Lock()
	defer indexes.Unlock()
	if indexes.connections--; indexes.connections > 0 {
		return
	}
	for _, index := range indexes.open {
		_ = index.file.Close()
	}
	indexes.open = nil
}
