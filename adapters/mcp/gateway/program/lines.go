package program

import (
	"bufio"
	"bytes"
	"errors"
	"io"

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

// textOf returns a line that is not a message for the log, but nothing of a message, which may have
// what a person has asked for.
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
