package persistence

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// index is a WAL index that is mapped, so that it is read without a call of the system. SQLite never makes the file shorter than its first
// page, and what is mapped stays until nobody has the index any more.
type index struct {
	file   *os.File
	mapped *[indexHead]uint32
}

// head is its head at this moment, or something that it never was while a commit changes it.
func (i *index) head() (head [indexHead]uint32) {
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
			return index, index.mapHead(found)
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	opened := &index{file: file}
	indexes.open = append(indexes.open, opened)
	return opened, opened.mapHead(found)
}

func (i *index) mapHead(found os.FileInfo) error {
	if i.mapped != nil {
		return nil
	}
	if found.Size() == 0 { // and then nothing of the page may be read
		return errNoIndex
	}
	page, err := mapPage(i.file)
	if err != nil {
		return errors.Join(errNoIndex, err)
	}
	i.mapped = (*[indexHead]uint32)(unsafe.Pointer(unsafe.SliceData(page)))
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
