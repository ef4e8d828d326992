// Package load sends requests to a server and measures the latency. Its own HTTP client costs far
// less than the servers it measures.
package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// patience is the timeout of a response.
const patience = 30 * time.Second

// Conn is a keep-alive HTTP/1.1 connection.
type Conn struct {
	socket *socket
	reader *bufio.Reader
	answer Answer
}

// Answer is valid until the next request on its connection.
type Answer struct {
	Status   int
	Location string
	Session  string // Mcp-Session-Id
	Cookies  []string
	Body     []byte
}

// Dial connects from a loopback address of the client's own, so that the server sees different
// clients.
func Dial(address string, client int) (*Conn, error) {
	to, err := addressOf(address)
	if err != nil {
		return nil, err
	}
	connection, err := connect(ofThisComputer(client), to)
	if err != nil {
		return nil, err
	}
	return &Conn{socket: connection, reader: bufio.NewReaderSize(connection, 16<<10)}, nil
}

// Looks returns how often the connection was polled, and how often without a response.
func (c *Conn) Looks() (all, empty int64) { return c.socket.looks.Load(), c.socket.empty.Load() }

// Close ends the connection.
func (c *Conn) Close() { _ = c.socket.Close() }

// Do sends a request and reads the whole response.
func (c *Conn) Do(request []byte) (*Answer, error) {
	if err := c.begin(request); err != nil {
		return nil, err
	}
	size, chunked, err := c.readHead()
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the response: %w", err)
	case chunked:
		err = c.readChunks()
	default:
		err = c.readBytes(size)
	}
	return &c.answer, err
}

// Open sends a request for a stream, and reads the response head and the first line.
func (c *Conn) Open(request []byte) (*Answer, string, error) {
	if err := c.begin(request); err != nil {
		return nil, "", err
	}
	_, chunked, err := c.readHead()
	if err == nil && chunked {
		_, err = c.line() // the length of the first chunk
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading the stream: %w", err)
	}
	line, err := c.line()
	return &c.answer, string(line), err
}

func (c *Conn) begin(request []byte) error {
	c.socket.ends = time.Now().Add(patience)
	c.answer = Answer{Body: c.answer.Body[:0]}
	_, err := c.socket.Write(request)
	return err
}

func (c *Conn) line() ([]byte, error) {
	line, err := c.reader.ReadSlice('\n')
	return bytes.TrimRight(line, "\r\n"), err
}

// readHead returns the length of the body, or that it is chunked.
func (c *Conn) readHead() (size int, chunked bool, err error) {
	line, err := c.line()
	if err != nil {
		return 0, false, err
	}
	if len(line) < 12 {
		return 0, false, errors.New("the response is not HTTP")
	}
	if c.answer.Status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, false, err
	}
	for {
		line, err = c.line()
		if err != nil || len(line) == 0 {
			return size, chunked, err
		}
		if value, is := header(line, "content-length"); is {
			size, err = strconv.Atoi(string(value))
		} else if value, is := header(line, "transfer-encoding"); is {
			chunked = string(value) == "chunked"
		} else {
			c.note(line)
		}
		if err != nil {
			return 0, false, err
		}
	}
}

func (c *Conn) note(line []byte) {
	if value, is := header(line, "location"); is {
		c.answer.Location = string(value)
	} else if value, is := header(line, "mcp-session-id"); is {
		c.answer.Session = string(value)
	} else if value, is := header(line, "set-cookie"); is {
		pair, _, _ := bytes.Cut(value, []byte(";"))
		c.answer.Cookies = append(c.answer.Cookies, string(pair))
	}
}

// header returns the value of a header line with this name, which must be in lower case.
func header(line []byte, name string) (value []byte, is bool) {
	if len(line) <= len(name) || line[len(name)] != ':' {
		return nil, false
	}
	for i := range len(name) {
		if line[i]|0x20 != name[i] && line[i] != name[i] {
			return nil, false
		}
	}
	return bytes.TrimSpace(line[len(name)+1:]), true
}

func (c *Conn) readBytes(size int) error {
	had := len(c.answer.Body)
	if free := cap(c.answer.Body) - had; free < size {
		c.answer.Body = append(make([]byte, 0, had+2*size), c.answer.Body...)
	}
	c.answer.Body = c.answer.Body[:had+size]
	_, err := io.ReadFull(c.reader, c.answer.Body[had:])
	return err
}

func (c *Conn) readChunks() error {
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		size, err := strconv.ParseUint(string(line), 16, 31)
		if err != nil {
			return err
		}
		if err := c.readBytes(int(size)); err != nil {
			return err
		}
		if _, err := c.line(); err != nil || size == 0 {
			return err
		}
	}
}
