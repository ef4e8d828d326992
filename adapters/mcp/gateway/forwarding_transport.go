package gateway

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/pasteport/pasteport/domain/recovered"
)

var errLongList = errors.New("the list of tools is longer than 8 MiB")

// forwardingTransport lets a client of the SDK reach an Upstream in this process, of any kind and
// with the credential of a person.
type forwardingTransport struct {
	forward func(w http.ResponseWriter, r *http.Request, body []byte) error

	mu     sync.Mutex
	left   int   // bytes of all responses
	failed error // of the last request; nil if it was answered
}

func (t *forwardingTransport) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

// RoundTrip implements http.RoundTripper. It returns when the response is complete.
func (t *forwardingTransport) RoundTrip(r *http.Request) (_ *http.Response, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = recovered.New(value)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.failed = err
	}()
	var body []byte
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }()
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	incoming := r.Clone(r.Context())
	incoming.Body, incoming.RequestURI = io.NopCloser(bytes.NewReader(body)), r.URL.RequestURI()
	w := &bufferedResponse{transport: t, header: http.Header{}}
	if err := cmp.Or(t.forward(w, incoming, body), w.failed); err != nil {
		return nil, err
	}
	w.WriteHeader(http.StatusOK)
	return &http.Response{
		StatusCode:    w.status,
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        w.header,
		Body:          io.NopCloser(&w.body),
		ContentLength: int64(w.body.Len()),
		Request:       r,
	}, nil
}

type bufferedResponse struct {
	transport *forwardingTransport
	header    http.Header
	status    int
	body      bytes.Buffer
	failed    error // because it is too long
}

// Header implements http.ResponseWriter.
func (b *bufferedResponse) Header() http.Header { return b.header }

// WriteHeader implements http.ResponseWriter.
func (b *bufferedResponse) WriteHeader(status int) {
	if b.status == 0 && status >= http.StatusOK {
		b.status = status
	}
}

// Write implements http.ResponseWriter.
func (b *bufferedResponse) Write(chunk []byte) (int, error) {
	b.WriteHeader(http.StatusOK)
	b.transport.mu.Lock()
	defer b.transport.mu.Unlock()
	if b.transport.left -= len(chunk); b.transport.left < 0 {
		b.failed = errLongList
		return 0, errLongList
	}
	return b.body.Write(chunk)
}

// FlushError is called by http.ResponseController.
func (*bufferedResponse) FlushError() error { return nil }
