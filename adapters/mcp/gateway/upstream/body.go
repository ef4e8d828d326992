package upstream

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// responseBody is the body of a response. It fails with errCut when it breaks off, and releases the
// context of its request when it is closed.
type responseBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Read implements io.Reader.
func (b *responseBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", errCut, err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *responseBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

// decode decompresses a body: some servers and proxies compress every response, and neither clients
// nor the rules expect that.
func decode(answer *http.Response) {
	switch strings.ToLower(strings.Join(answer.Header.Values("Content-Encoding"), ",")) {
	case "gzip", "x-gzip":
		answer.Body, answer.ContentLength = &gunzip{ReadCloser: answer.Body}, -1
		for _, name := range []string{"Content-Encoding", "Content-Length", "Etag"} {
			answer.Header.Del(name)
		}
	case "identity":
		answer.Header.Del("Content-Encoding")
	}
}

// gunzip decompresses a body. It begins at the first Read, because a stream can send its first
// bytes late.
type gunzip struct {
	io.ReadCloser
	plain *gzip.Reader
}

// Read implements io.Reader.
func (g *gunzip) Read(p []byte) (n int, err error) {
	if g.plain == nil {
		if g.plain, err = gzip.NewReader(g.ReadCloser); err != nil {
			return 0, err // io.EOF for a response without a body
		}
	}
	return g.plain.Read(p)
}
