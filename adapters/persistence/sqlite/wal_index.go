package sqlite

import (
	"encoding/binary"
	"os"
	"sync"
)

// walIndex is an open WAL index.
type walIndex struct{ file *os.File }

// head reads the head. While a commit changes it, the result is a mixture that matches no version. It is zero when another process has truncated the
// file.
func (i *walIndex) head() (head walIndexHead) {
	var bytes [4 * len(head)]byte
	if _, err := i.file.ReadAt(bytes[:], 0); err != nil {
		return walIndexHead{}
	}
	for word := range head {
		head[word] = binary.NativeEndian.Uint32(bytes[4*word:])
	}
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
			return index, nil
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	opened := &walIndex{file: file}
	walIndexes.open = append(walIndexes.open, opened)
	return opened, nil
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
