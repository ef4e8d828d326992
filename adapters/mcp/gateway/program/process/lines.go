package process

import (
	"bufio"
	"io"
	"strings"
)

// lineWindow is how much of a line is kept.
const lineWindow = 64 << 10

// readLines calls line with the beginning of each line until the end.
func readLines(from io.Reader, line func(text string)) {
	reader := bufio.NewReaderSize(from, lineWindow)
	rest := false // of a line whose beginning was passed on
	for {
		text, err := reader.ReadSlice('\n')
		if !rest && len(text) > 0 {
			line(strings.TrimRight(string(text), "\r\n"))
		}
		if rest = err == bufio.ErrBufferFull; err != nil && !rest { //nolint:errorlint // bufio returns the value itself
			return
		}
	}
}
