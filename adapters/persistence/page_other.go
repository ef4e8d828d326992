//go:build !(linux || darwin || freebsd)

package persistence

import (
	"errors"
	"os"
)

// mapPage is for systems where a file that is mapped shows what is written to it. Without it nothing is remembered.
func mapPage(*os.File) (page []byte, err error) { return nil, errors.ErrUnsupported }

func unmapPage([]byte) {}
