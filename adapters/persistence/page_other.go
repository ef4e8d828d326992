//go:build !(linux || darwin || freebsd)

package persistence

import (
	"errors"
	"os"
)

// canMap says whether a file that is mapped shows what is written to it. Without that nothing is remembered.
const canMap = false

func mapPage(*os.File) (page []byte, err error) { return nil, errors.ErrUnsupported }

func unmapPage([]byte) {}
