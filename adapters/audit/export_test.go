package audit

import (
	"bytes"
	"os"
)

// Break makes writes fail, as on a full disk, until heal is called.
func Break(f *File) (heal func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.file.Close()
	f.file, _ = os.Open(f.options.Path)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		_ = f.file.Close()
		f.file, _ = os.OpenFile(f.options.Path, os.O_APPEND|os.O_RDWR, ownerOnly)
	}
}

// Forge returns a line with a valid hash after another, as one who knows the format can make it.
func Forge(line, after []byte) []byte {
	sealed, _ := parseSealed(bytes.TrimSuffix(after, []byte("\n")))
	forged, _ := sealed.seal(line)
	return forged
}
