package program

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"golang.org/x/time/rate"

	"github.com/pasteport/pasteport/adapters/mcp/message"
)

const (
	// maxMessage is the maximum length of a message of the program.
	maxMessage = 16 << 20
	// lineBuffer is the longest line for which no memory is reserved.
	lineBuffer = 64 << 10
)

// readMessages calls handle with each message on its own line, and other with each line that is not
// one, because many programs print text at their start. An answer that cannot be read becomes an
// error. A long line uses the memory for bodies until it is handled.
func readMessages(from io.Reader, memory *message.Reservation, handle func(message.Message),
	other func(line string)) error {
	defer memory.Release()
	reader := bufio.NewReaderSize(from, lineBuffer)
	for {
		line, err := readLine(reader, memory)
		line = bytes.TrimPrefix(line, message.ByteOrderMark)
		var messages []message.Message
		var wrong error
		if err == nil {
			messages, _, wrong = message.Decode(line)
		}
		if wrong != nil || err != nil && len(line) > 0 {
			other(textOf(line, err))
		}
		if wrong != nil {
			messages = message.RefuseAnswers(wrong, line)
		}
		for _, m := range messages {
			handle(m)
		}
		memory.Release()
		if err != nil {
			return err
		}
	}
}

// textOf returns what the log may show of a line that is not a message. It shows no part of a
// message, because that may contain what a person has asked for.
func textOf(line []byte, err error) string {
	start := bytes.TrimLeft(line, " \t")
	switch isObject := len(start) > 0 && (start[0] == '{' || start[0] == '['); {
	case isObject && err != nil:
		return "the beginning of a message, which was cut off"
	case isObject && bytes.Contains(line, []byte(`"jsonrpc"`)):
		return "a message that cannot be read"
	}
	return string(bytes.TrimRight(line[:min(len(line), lineBuffer)], "\r\n"))
}

// readLine returns the next line, which is valid until the next call.
func readLine(reader *bufio.Reader, memory *message.Reservation) (line []byte, err error) {
	part, err := reader.ReadSlice('\n')
	if err != bufio.ErrBufferFull { //nolint:errorlint // bufio returns the value itself
		return part, err
	}
	for {
		length := len(line) + len(part)
		if length > maxMessage {
			return nil, errLongMessage
		}
		if length > cap(line) {
			capacity := min(2*length, maxMessage)
			if memory.Extend(2*int64(capacity)) != nil { // also for the copy with the id of the client
				return nil, errNoMemory
			}
			line = append(make([]byte, 0, capacity), line...)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		part, err = reader.ReadSlice('\n')
	}
}

const (
	loggedLine = 4 << 10 // bytes

	quotedLines = 3
	quotedLine  = 200 // bytes
)

// output logs the lines that a program prints and that are not messages, and quotes the last ones
// when the program has ended.
type output struct {
	session *session
	hasKey  func(text string) bool // reports whether a text contains the key

	mu      sync.Mutex
	limit   *rate.Limiter
	skipped int
	last    []string
}

// logger returns a function that logs a line of the stream, and keeps it for quote.
func (o *output) logger(stream string) func(line string) {
	return func(line string) {
		if strings.TrimSpace(line) != "" {
			quoted := line
			if len(line) > loggedLine {
				quoted = "(a long line)"
			}
			o.mu.Lock()
			o.last = append(o.last, quoted)
			o.last = o.last[max(0, len(o.last)-quotedLines):]
			o.mu.Unlock()
		}
		o.log(stream+" of a program", "line", line)
	}
}

// log logs what the program has printed, unless there is too much.
func (o *output) log(message, attribute, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.limit.Allow() {
		o.skipped++
		return
	}
	attributes := []any{"session", o.session.label(), "grant", o.session.grant, attribute, o.clean(text, loggedLine)}
	if o.skipped > 0 {
		attributes = append(attributes, "skipped", o.skipped)
		o.skipped = 0
	}
	o.session.upstream.config.Logger.Info(message, attributes...)
}

// clean returns the beginning of a line without the key.
func (o *output) clean(line string, length int) string {
	if o.hasKey(line) { // the whole line, because the key may be cut off in the middle
		return "(a line with the key is left out)"
	}
	return strings.ToValidUTF8(line[:min(len(line), length)], "\ufffd")
}

// quote adds the last lines to the error of a program that has failed. It is for the log: the lines
// may concern the operator.
func (o *output) quote(cause error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.last) == 0 || errors.Is(cause, errClosed) {
		return cause
	}
	var lines []string
	for _, line := range o.last {
		lines = append(lines, o.clean(line, quotedLine))
	}
	return fmt.Errorf("%w; the last lines that it printed: %q", cause, lines)
}
