//go:build !unix

package audit

import "os"

// lock does nothing: there is no advisory lock here.
func lock(*os.File) error { return nil }
