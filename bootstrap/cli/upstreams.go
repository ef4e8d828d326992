package cli

import (
	"fmt"
	"io"

	"github.com/pasteport/pasteport/bootstrap/server"
)

// printUpstreams prints a line for each upstream: that it works, or a warning with the cause and the remedy (U31).
func printUpstreams(out io.Writer, all []server.UpstreamStatus) {
	for _, upstream := range all {
		warning := ""
		if !upstream.State.Works() {
			warning = "warning: "
		}
		_, _ = fmt.Fprintf(out, "%supstream %s: %s\n", warning, upstream.Name, upstream.State)
	}
}
