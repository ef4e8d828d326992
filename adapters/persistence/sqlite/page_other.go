//go:build !(linux || darwin || freebsd)

package sqlite

import (
	"errors"
	"os"
)

// canMap reports whether a mapped file shows what other processes write to it. Otherwise nothing is cached.
const canMap = false

func mapPage(*os.File) (page []byte, err error) { return nil, errors.ErrUnsupported }

func unmapPage([]byte) {}
